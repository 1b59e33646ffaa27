//! What a plot shows, apart from how it is drawn.

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// From left to right; one that is no number is a gap.
    pub points: Vec<(f64, f64)>,
}

/// What is drawn between the axes.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// One box (quartiles, median, extremes, samples) for each named group.
    Boxes(Vec<(String, Vec<f64>)>),
    /// Lines, and a dashed line at the threshold.
    Lines {
        /// The lines.
        series: Vec<Series>,
        /// Height of the dashed line.
        threshold: Option<f64>,
    },
    /// Named points: name, x, y.
    Points(Vec<(String, f64, f64)>),
    /// A histogram: bars side by side, each with the text under its left edge, which may be empty,
    /// and its height.
    Bars(Vec<(String, f64)>),
    /// A table of cells, each the darker the larger its number is.
    Heat(Heat),
}

/// A table of ratios.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heat {
    /// Above the columns.
    pub columns: Vec<String>,
    /// The name of each row and its cells, one for each column; `None` where nothing was measured.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

/// One cell of a [`Heat`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The ratio: a cell is white up to 1, and darkest from 10 on.
    pub ratio: f64,
    /// Under the ratio, in small letters.
    pub note: String,
}

/// One plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below it; may be empty.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// In it.
    pub chart: Chart,
}
