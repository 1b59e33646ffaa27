//! What a course of rates sums up to.

/// How much of what is counted there had been by each moment (seconds), ascending.
#[derive(Debug)]
pub struct Sums(Vec<(f64, f64)>);

impl Sums {
    /// Of rates, each the mean from the point before up to its moment; the last one over `width` seconds, if they
    /// are more ([`crate::lab::sampler::Courses::rate`]).
    #[must_use]
    pub fn of(course: &[(f64, f64)], width: f64) -> Self {
        let mut sums = Self(vec![(0.0, 0.0)]);
        for (to, rate) in course {
            let from = sums.0.last().map_or(0.0, |last| last.0);
            let length = (to - from).max(width.min(*to));
            sums.0.push((*to, sums.at(to - length) + rate * length));
        }
        sums
    }

    /// All moments with what there had been.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.0.iter().copied()
    }

    /// What there had been by a moment, if it came evenly between two points.
    #[must_use]
    pub fn at(&self, time: f64) -> f64 {
        between(self.0.iter().copied(), time)
    }

    /// When so much had been, in the same way.
    #[must_use]
    pub fn moment_of(&self, sum: f64) -> f64 {
        between(self.0.iter().map(|(time, sum)| (*sum, *time)), sum)
    }

    /// The mean rate over the `width` seconds before each point, where there are so many; over all, if there are
    /// nowhere.
    #[must_use]
    pub fn means(&self, width: f64) -> Vec<(f64, f64)> {
        let end = self.0.last().map_or(0.0, |last| last.0);
        let width = width.min(end);
        let full = self.points().filter(|(to, _)| width > 0.0 && *to >= width);
        full.map(|(to, sum)| (to, (sum - self.at(to - width)) / width)).collect()
    }

    /// The rate in each whole second, by where it ends.
    #[must_use]
    pub fn seconds(&self) -> Vec<(f64, f64)> {
        let end = self.0.last().map_or(0.0, |last| last.0);
        let ends = (1..=end as u32).map(f64::from);
        ends.map(|to| (to, self.at(to) - self.at(to - 1.0))).collect()
    }
}

/// On the line through points that ascend; outside the value of the nearest one.
fn between(points: impl Iterator<Item = (f64, f64)>, wanted: f64) -> f64 {
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in points {
        if x > wanted {
            return before.map_or(y, |(x0, y0)| y0 + (y - y0) * (wanted - x0) / (x - x0));
        }
        before = Some((x, y));
    }
    before.map_or(0.0, |(_, y)| y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_point_may_tell_of_what_others_told_before() {
        // 30 came in the second second, all of it in its second half, and 10 after it.
        let sums = Sums::of(&[(1.0, 10.0), (2.0, 30.0), (2.5, 40.0)], 1.0);
        assert_eq!(
            sums.points().last(),
            Some((2.5, 65.0)),
            "half of the 30 are taken to have come before"
        );
        assert_eq!(sums.means(2.0), [(2.0, 20.0), (2.5, 30.0)]);
        assert_eq!(sums.means(9.0), [(2.5, 26.0)]);
        assert_eq!(sums.seconds(), [(1.0, 10.0), (2.0, 30.0)]);
    }

    #[test]
    fn rates_of_any_width_sum_up() {
        let sums = Sums::of(&[(0.25, 8.0), (0.5, 0.0), (1.0, 4.0), (1.25, 100.0)], 0.0);
        assert_eq!(sums.seconds(), [(1.0, 4.0)]);
        assert_eq!((sums.at(0.125), sums.at(2.0)), (1.0, 29.0));
        assert_eq!((sums.moment_of(1.0), sums.moment_of(99.0)), (0.125, 1.25));
        assert_eq!(Sums::of(&[], 1.0).means(5.0), []);
    }
}
