use super::*;
use crate::plot::{Cell, Heat};

fn plot(chart: Chart) -> Plot {
    Plot { title: "a < b & c".into(), x_label: "x".into(), y_label: "y".into(), chart }
}

#[test]
fn every_chart_survives_emptiness_and_odd_numbers() {
    let odd = vec![(0.0, f64::NAN), (1.0, 2.0)];
    for chart in [
        Chart::Boxes(vec![]),
        Chart::Boxes(vec![("none".into(), vec![]), ("one".into(), vec![1.0])]),
        Chart::Lines { series: vec![], threshold: None },
        Chart::Lines {
            series: vec![Series { name: "s".into(), points: odd }],
            threshold: Some(5.0),
        },
        Chart::Points(vec![("p".into(), 0.0, 0.0)]),
        Chart::Bars(vec![]),
        Chart::Bars(vec![("1 ms".into(), 3.0), (String::new(), f64::NAN)]),
        Chart::Heat(Heat::default()),
        Chart::Heat(heat(&[f64::NAN, f64::INFINITY, 0.0, -1.0])),
    ] {
        let svg = draw(&plot(chart));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

fn heat(ratios: &[f64]) -> Heat {
    let cell = |ratio: &f64| Some(Cell { ratio: *ratio, note: "5 MB/s".into() });
    let cells = ratios.iter().map(cell).chain([None]).collect();
    Heat { columns: vec!["c".into()], rows: vec![("r".into(), cells)] }
}

#[test]
fn a_cell_is_the_darker_the_larger_its_ratio_is() {
    let svg = draw(&plot(Chart::Heat(heat(&[0.9, 1.0, 3.2, 10.0, 99.0]))));
    let colour = |line: &str| Some(line.split_once("rgb(")?.1.split_once(')')?.0.to_owned());
    let colours: Vec<String> = svg.lines().filter_map(colour).collect();
    let (white, half, dark) = ("255,255,255", "215,150,126", "176,48,0");
    assert_eq!(colours, [white, white, half, dark, dark]);
    assert!(svg.contains(">3.20<") && svg.contains(">5 MB/s<"));
}

#[test]
fn a_box_is_drawn_at_its_quartiles() {
    let numbers = vec![1.0, 2.0, 3.0, 4.0, 5.0];
    let svg = draw(&plot(Chart::Boxes(vec![("g".into(), numbers)])));
    // The axis ends at 5; quartiles 2 and 4 lie at 3/5 and 1/5 of the height.
    let y = TOP + HEIGHT / 5.0;
    let height = HEIGHT * 2.0 / 5.0;
    assert!(
        svg.contains(&format!("y=\"{y:.1}\"")) && svg.contains(&format!("height=\"{height:.1}\""))
    );
    assert_eq!(svg.matches("<circle").count(), 5);
}

/// A path of one point is drawn as nothing (SVG 1.1, 11.4).
#[test]
fn a_line_of_one_point_is_seen() {
    let points = |points: &[(f64, f64)]| {
        let series = vec![Series { name: "s".into(), points: points.to_vec() }];
        draw(&plot(Chart::Lines { series, threshold: None }))
    };
    assert_eq!(points(&[(1.0, 2.0)]).matches("<circle").count(), 1);
    assert_eq!(points(&[(0.5, f64::NAN), (1.0, 2.0)]).matches("<circle").count(), 1);
    assert_eq!(points(&[(0.5, 1.0), (1.0, 2.0)]).matches("<circle").count(), 0);
    assert!(!points(&[]).contains("<circle"));
}
