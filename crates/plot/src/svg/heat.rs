//! Tables of ratios, shaded.

use super::{LEFT, Page, RIGHT, TOP, WIDTH, short};
use crate::plot::{Cell, Heat};

/// Height of a row.
const ROW: f64 = 30.0;
/// Width of the names of the rows, beyond the margin.
const NAMES: f64 = 56.0;
/// A cell is darkest from this ratio on.
const DARKEST: f64 = 10.0;
/// Colours of the ratios 1 and [`DARKEST`].
const LIGHT: [f64; 3] = [255.0, 255.0, 255.0];
const DARK: [f64; 3] = [176.0, 48.0, 0.0];

impl Page<'_> {
    pub(super) fn heat(&mut self, table: &Heat) {
        let left = LEFT + NAMES;
        let width = (WIDTH - left - RIGHT) / table.columns.len().max(1) as f64;
        for (index, name) in table.columns.iter().enumerate() {
            let x = left + width * (index as f64 + 0.5);
            self.text(x, TOP + 12.0, "text-anchor=\"middle\"", name);
        }
        for (index, (name, cells)) in table.rows.iter().enumerate() {
            let y = TOP + 20.0 + ROW * index as f64;
            self.text(left - 6.0, y + ROW / 2.0 + 4.0, "text-anchor=\"end\"", name);
            for (column, cell) in cells.iter().enumerate() {
                if let Some(cell) = cell {
                    self.cell((left + width * column as f64, y), width, cell);
                }
            }
        }
        self.height = TOP + 20.0 + ROW * table.rows.len() as f64 + 12.0;
    }

    fn cell(&mut self, (x, y): (f64, f64), width: f64, cell: &Cell) {
        let share = share(cell.ratio);
        let [red, green, blue] =
            [0, 1, 2].map(|part| (LIGHT[part] + (DARK[part] - LIGHT[part]) * share).round());
        self.add(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"rgb({red},{green},{blue})\" stroke=\"#ddd\"/>",
            width - 2.0,
            ROW - 2.0
        ));
        let colour = if share > 0.6 { "#fff" } else { "#000" };
        let style = format!("text-anchor=\"middle\" fill=\"{colour}\"");
        let middle = x + width / 2.0 - 1.0;
        if cell.ratio.is_finite() {
            self.text(middle, y + 13.0, &style, &short(cell.ratio));
        }
        self.text(middle, y + 24.0, &format!("{style} font-size=\"9\""), &cell.note);
    }
}

/// Where a ratio lies between 1 and [`DARKEST`], by its logarithm: 0 to 1.
fn share(ratio: f64) -> f64 {
    let share = ratio.ln() / DARKEST.ln();
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}
