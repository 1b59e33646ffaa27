//! A schedule in words, before the job runs.

use std::fmt;

use discnice_escape::Foreign;

use super::ScheduleArgs;
use super::conditions::{OnlyWhen, Term};
use super::until::Then;

impl ScheduleArgs {
    /// What is to be done for a job, one thing a line.
    pub fn lines(&self) -> Vec<String> {
        let only =
            self.only_when.as_ref().map(|wanted| format!("only while {wanted}; paused otherwise"));
        let until = self.until.map(|at| match self.then {
            Then::Term => format!("until {at}, then it is asked to end (SIGTERM)"),
            Then::Stop => format!("until {at}, then it is paused"),
            Then::Continue => format!("until {at}, then it goes on without limits"),
        });
        let finish = self
            .finish_by
            .map(|by| format!("to end by {by}: at the lowest rate that suffices for that"));
        let asks = "asks on the desktop once its disk total is used up";
        let ask = self.ask.then(|| asks.to_owned());
        [only, until, finish, ask].into_iter().flatten().collect()
    }
}

impl fmt::Display for OnlyWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.0.iter().map(Term::to_string).collect();
        f.write_str(&terms.join(", "))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ac => f.write_str("on mains power"),
            Self::Unmetered => f.write_str("on an unmetered network"),
            Self::Idle(time) => match time.as_secs() {
                seconds if seconds % 60 == 0 => write!(f, "unused for {} min", seconds / 60),
                seconds => write!(f, "unused for {seconds} s"),
            },
            Self::Hours(from, to) => {
                let clock = |at: &u32| format!("{:02}:{:02}", at / 3600, at / 60 % 60);
                write!(f, "between {} and {}", clock(from), clock(to))
            }
            Self::Load(below) => write!(f, "the load is below {below}"),
            Self::Command(command) => write!(f, "`{}` succeeds", Foreign::text(command)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        schedule: ScheduleArgs,
        #[arg(long)]
        disk_total: Option<String>,
    }

    fn told(words: &[&str]) -> Vec<String> {
        Line::parse_from([&["line"], words].concat()).schedule.lines()
    }

    #[test]
    fn each_part_of_a_schedule_is_told() {
        let all = "ac,unmetered,idle=10m,22:00-06:00,load<2.5,cmd:test -e \x1b";
        assert_eq!(
            told(&["--only-when", all]),
            ["only while on mains power, on an unmetered network, unused for 10 min, \
              between 22:00 and 06:00, the load is below 2.5, `test -e \\u{1b}` succeeds; \
              paused otherwise"]
        );
        for (then, what) in [("term", "asked to end"), ("stop", "paused"), ("continue", "without")]
        {
            let line = told(&["--until", "2999-01-02 03:04", "--then", then]).join("\n");
            assert!(line.starts_with("until 2999-01-02 03:04, then it "), "{line}");
            assert!(line.contains(what), "{line}");
        }
        let line = told(&["--finish-by", "2999-01-02 03:04"]).join("\n");
        assert!(line.starts_with("to end by 2999-01-02 03:04: "), "{line}");
        assert_eq!(told(&["--ask", "--disk-total", "1G"]).len(), 1);
        assert!(told(&[]).is_empty());
    }
}
