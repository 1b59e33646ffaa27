//! Best access order for files, and for the parts of one file: the paper's `gbp` (sections 4.1.2
//! and 4.2.4).

mod cat;
mod error;
mod list;
mod names;
mod plan;
mod rank;
mod units;

pub use cat::{CatOptions, cat};
pub use error::OrderError;
pub use list::{ListOptions, list, list_names};
pub use names::{Delimiter, Names};
pub use plan::{Piece, Plan, PlanOptions, order_pieces, plan};
pub use rank::{By, Ranking, rank};
