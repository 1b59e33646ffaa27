//! Drawing: readable on white and on dark pages.

mod heat;

use std::fmt::Write;

use discnice_escape::markup;

use crate::axis::Axis;
use crate::plot::{Chart, Plot, Series};
use crate::quantile;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 36.0;
const HEIGHT: f64 = 240.0;
/// Colours that colour-blind readers can tell apart (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Draws a plot.
#[must_use]
pub fn draw(plot: &Plot) -> String {
    let page = page(plot);
    frame(page.height, &page.content())
}

fn page(plot: &Plot) -> Page<'_> {
    let mut page = Page::new(plot);
    match &plot.chart {
        Chart::Boxes(groups) => page.boxes(groups),
        Chart::Lines { series, threshold } => page.lines(series, *threshold),
        Chart::Points(points) => page.points(points),
        Chart::Bars(bars) => page.bars(bars),
        Chart::Heat(table) => page.heat(table),
    }
    page
}

/// Draws plots below one another, as one picture.
#[must_use]
pub fn stack(plots: &[Plot]) -> String {
    let mut text = String::new();
    let mut height = 0.0;
    for plot in plots {
        let page = page(plot);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "<g transform=\"translate(0 {height:.0})\">");
        height += page.height;
        text.push_str(&page.content());
        text.push_str("</g>\n");
    }
    frame(height, &text)
}

fn frame(height: f64, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{content}</svg>\n"
    )
}

struct Page<'a> {
    plot: &'a Plot,
    body: String,
    height: f64,
}

impl<'a> Page<'a> {
    fn new(plot: &'a Plot) -> Self {
        Self { plot, body: String::new(), height: TOP + HEIGHT + 48.0 }
    }

    fn bottom() -> f64 {
        TOP + HEIGHT
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(&format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" {style}/>"));
    }

    fn text(&mut self, x: f64, y: f64, style: &str, text: &str) {
        self.add(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escape(text)));
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    fn y_axis(&mut self, largest: f64) -> Axis {
        let axis = Axis::new(largest, Self::bottom(), TOP);
        for (y, mark) in axis.marks() {
            self.line((LEFT, y), (WIDTH - RIGHT, y), "stroke=\"#ddd\"");
            self.text(LEFT - 6.0, y + 4.0, "text-anchor=\"end\"", &mark);
        }
        let middle = TOP + HEIGHT / 2.0;
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 14 {middle})\"");
        self.text(14.0, middle, &turned, &self.plot.y_label);
        axis
    }

    fn x_axis(&mut self, largest: f64) -> Axis {
        let axis = Axis::new(largest, LEFT, WIDTH - RIGHT);
        for (x, mark) in axis.marks() {
            self.line((x, Self::bottom()), (x, Self::bottom() + 5.0), "stroke=\"#333\"");
            self.text(x, Self::bottom() + 18.0, "text-anchor=\"middle\"", &mark);
        }
        self.x_label();
        axis
    }

    fn boxes(&mut self, groups: &[(String, Vec<f64>)]) {
        let all = groups.iter().flat_map(|(_, numbers)| numbers).copied();
        let axis = self.y_axis(all.fold(0.0, f64::max));
        let width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
        let longest = groups.iter().map(|(name, _)| name.len()).max().unwrap_or(0) as f64;
        // Names that do not fit side by side are slanted and need room below.
        let slanted = longest * 6.5 > width;
        if slanted {
            self.height += longest * 3.6;
        }
        for (index, (name, numbers)) in groups.iter().enumerate() {
            let x = LEFT + width * (index as f64 + 0.5);
            self.one_box(x, (width * 0.25).min(24.0), numbers, &axis);
            let y = Self::bottom() + 16.0;
            let style = if slanted {
                format!("text-anchor=\"end\" transform=\"rotate(-32 {x:.1} {y:.1})\"")
            } else {
                "text-anchor=\"middle\"".to_owned()
            };
            self.text(x, y, &style, name);
        }
    }

    fn one_box(&mut self, x: f64, half: f64, numbers: &[f64], axis: &Axis) {
        let at = |share: f64| quantile(numbers, share).map(|number| axis.place(number));
        let (Some(low), Some(q1), Some(middle), Some(q3), Some(high)) =
            (at(0.0), at(0.25), at(0.5), at(0.75), at(1.0))
        else {
            return;
        };
        self.line((x, low), (x, high), "stroke=\"#333\"");
        self.add(&format!(
            "<rect x=\"{:.1}\" y=\"{q3:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#cfe3f1\" \
             stroke=\"#0072b2\"/>",
            x - half,
            2.0 * half,
            (q1 - q3).max(0.5)
        ));
        self.line((x - half, middle), (x + half, middle), "stroke=\"#0072b2\" stroke-width=\"2\"");
        for number in numbers {
            let y = axis.place(*number);
            self.add(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"#d55e00\"/>"));
        }
        let text = quantile(numbers, 0.5).map(short).unwrap_or_default();
        self.text(x, high - 6.0, "text-anchor=\"middle\" font-size=\"11\"", &text);
    }

    fn lines(&mut self, series: &[Series], threshold: Option<f64>) {
        let points = || series.iter().flat_map(|line| &line.points);
        let y_axis = self.y_axis(points().map(|p| p.1).chain(threshold).fold(0.0, f64::max));
        let x_axis = self.x_axis(points().map(|p| p.0).fold(0.0, f64::max));
        for (index, line) in series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            for part in line.points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
                let places = part.iter().map(|(x, y)| (x_axis.place(*x), y_axis.place(*y)));
                self.path(&places.collect::<Vec<_>>(), colour);
            }
            self.legend(index, colour, &line.name);
        }
        if let Some(threshold) = threshold {
            let y = y_axis.place(threshold);
            let style = "stroke=\"#b00\" stroke-dasharray=\"6 4\"";
            self.line((LEFT, y), (WIDTH - RIGHT, y), style);
            self.text(WIDTH - RIGHT, y - 4.0, "text-anchor=\"end\" fill=\"#b00\"", "threshold");
        }
    }

    /// A line through these places; a path of one alone would not be seen.
    fn path(&mut self, places: &[(f64, f64)], colour: &str) {
        match places {
            [] => return,
            [(x, y)] => {
                let place = format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"");
                return self.add(&format!("<circle {place} fill=\"{colour}\"/>"));
            }
            _ => {}
        }
        let mut path = String::new();
        for (x, y) in places {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        let style = "fill=\"none\" stroke-width=\"1.8\"";
        self.add(&format!("<path d=\"{path}\" stroke=\"{colour}\" {style}/>"));
    }

    fn points(&mut self, points: &[(String, f64, f64)]) {
        let y_axis = self.y_axis(points.iter().map(|p| p.2).fold(0.0, f64::max));
        let x_axis = self.x_axis(points.iter().map(|p| p.1).fold(0.0, f64::max) * 1.02);
        for (index, (_, x, y)) in points.iter().enumerate() {
            let (x, y) = (x_axis.place(*x), y_axis.place(*y));
            let colour = COLOURS[index % COLOURS.len()];
            self.add(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"));
            // Numbers beside the points and names below: names would cover each other.
            // They alternate between right and left, since neighbours in the list are often close.
            let (side, anchor) = if index % 2 == 0 { (7.0, "start") } else { (-7.0, "end") };
            let style = format!("font-size=\"11\" text-anchor=\"{anchor}\"");
            self.text(x + side, y - 5.0, &style, &(index + 1).to_string());
        }
        for (index, (name, x, y)) in points.iter().enumerate() {
            let text = format!("{} {name}: {} MB/s, {} times", index + 1, short(*x), short(*y));
            let column = LEFT + (index % 2) as f64 * (WIDTH - LEFT) / 2.0;
            let row = Self::bottom() + 58.0 + (index / 2) as f64 * 16.0;
            let colour = COLOURS[index % COLOURS.len()];
            self.add(&format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
                column,
                row - 4.0
            ));
            self.text(column + 9.0, row, "font-size=\"11\"", &text);
        }
        self.height += 16.0 * points.len().div_ceil(2) as f64 + 8.0;
    }

    fn bars(&mut self, bars: &[(String, f64)]) {
        let axis = self.y_axis(bars.iter().map(|bar| bar.1).fold(0.0, f64::max));
        let width = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
        let bottom = Self::bottom();
        for (index, (name, number)) in bars.iter().enumerate() {
            let x = LEFT + width * index as f64;
            if number.is_finite() && *number > 0.0 {
                let y = axis.place(*number);
                self.add(&format!(
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                     fill=\"{}\"/>",
                    (width * 0.92).max(0.5),
                    bottom - y,
                    COLOURS[0]
                ));
            }
            if !name.is_empty() {
                self.line((x, bottom), (x, bottom + 5.0), "stroke=\"#333\"");
                self.text(x, bottom + 18.0, "text-anchor=\"middle\"", name);
            }
        }
        self.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "stroke=\"#333\"");
        self.x_label();
    }

    fn x_label(&mut self) {
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        self.text(middle, Self::bottom() + 36.0, "text-anchor=\"middle\"", &self.plot.x_label);
    }

    /// Below the axis, where no line can cross it.
    fn legend(&mut self, index: usize, colour: &str, name: &str) {
        let x = LEFT + (index % 3) as f64 * 190.0;
        let y = Self::bottom() + 56.0 + (index / 3) as f64 * 16.0;
        let style = format!("stroke=\"{colour}\" stroke-width=\"2.5\"");
        self.line((x, y - 4.0), (x + 18.0, y - 4.0), &style);
        self.text(x + 24.0, y, "", name);
        self.height = self.height.max(y + 12.0);
    }

    fn content(&self) -> String {
        let title = escape(&self.plot.title);
        format!(
            "<title>{title}</title>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n{}",
            self.body
        )
    }
}

/// Three significant places.
#[must_use]
pub fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        n if n >= 1.0 || n == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// Makes text safe between and inside of XML tags.
#[must_use]
pub fn escape(text: &str) -> String {
    markup(text).into_owned()
}

#[cfg(test)]
mod tests;
