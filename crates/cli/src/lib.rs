//! `discnice`: background work that its neighbours do not notice.
//!
//! - [`commands`]: one file a subcommand, with its arguments (one `clap` struct, from which help,
//!   man page and completions come) and a `run` that returns the exit status;
//! - [`arguments`]: the command line; `complaint`: what is wrong with it, in one line;
//! - `binding`: what members of a class wait for;
//! - `classes`: the classes of this user, as commands name them;
//! - `config`: the user's defaults of classes;
//! - `escapes`: which processes of a class no limit held;
//! - `explanation`: what holds a command, class or process, and what it waits for;
//! - `polite`: the limits of a job that was given none;
//! - `fleet`: classes that share a budget with those of other machines;
//! - `fresh`: new files that are removed unless they are kept;
//! - `guest`: giving way in processor time and disk priority;
//! - `holding`: whether limits can hold for a command, and why not;
//! - `inheritance`: signals and descriptors that the command gets back as they were;
//! - `json`: JSON of many elements, in parts;
//! - `launch`: how a command is made regulated and executed in our place;
//! - `library`: where our library lies, and the copy of it that programs load;
//! - `live`: the line of `run --progress`;
//! - `memory`: what happens when no memory is left;
//! - `output`: everything that it says, so that no name which others chose reaches a terminal as it is;
//! - `prediction`: prediction against account, for machines;
//! - `program`: what kind of program a file is, and whether it can be regulated;
//! - `reading`: how far a job is in the file that it reads;
//! - `report`: what a job did over its time;
//! - `ruled`: processes that rules put into classes;
//! - `running`: the processes of a class that exist;
//! - `stack`: room for this program where `ulimit -s` leaves the command too little for it;
//! - `terminal`: what a command prints, read for its progress;
//! - `strict`: whether a command is refused for which a limit does not hold;
//! - `top`: a live view on a terminal;
//! - `values`: values of options that several subcommands take;
//! - `watching`: the daemon that watches classes from outside, as this program starts and asks it.

#![deny(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

pub mod arguments;
mod binding;
mod classes;
pub mod commands;
mod complaint;
pub mod config;
mod escapes;
mod explanation;
mod fleet;
mod fresh;
mod guest;
mod holding;
pub mod inheritance;
mod json;
mod launch;
mod library;
mod live;
pub mod mechanism;
pub mod memory;
pub mod output;
mod own_policy;
mod polite;
mod prediction;
mod presets;
mod program;
mod reading;
mod report;
mod ruled;
mod running;
mod schedule;
pub mod stack;
mod strict;
mod terminal;
mod top;
mod uplink;
mod used_up;
mod values;
mod watching;
