//! A foreground beside a background that runs already.

use std::process::Command;

use anyhow::bail;

use super::peer::Background;
use crate::frame::experiment::Step;
use crate::frame::record::Sample;
use crate::lab::Lab;
use crate::lab::job::Job;
use crate::lab::sampler::{Courses, Sampler};

/// Runs a foreground to its end, and then ends the background. The sample has the values `seconds`, `device bytes` and
/// `background bytes`.
///
/// # Errors
/// A command fails, or the background ended before the foreground.
pub fn measure(
    lab: &Lab,
    step: &Step,
    foreground: &mut Command,
    background: Option<Background>,
) -> anyhow::Result<(Sample, Courses)> {
    let foreground = Job::start(foreground)?;
    let mut groups = vec![("foreground", foreground.group())];
    groups.extend(background.as_ref().map(|job| ("background", job.group())));
    let sampler = Sampler::start(lab.device()?.to_owned(), groups)?;
    let mut commands = vec![foreground.words().to_owned()];
    commands.extend(background.as_ref().map(Background::words));
    let seconds = foreground.finish()?;
    let courses = sampler.finish()?;
    if let Some(job) = background
        && !job.end()?
    {
        bail!("the background ended before the foreground; the disk is too fast for this case");
    }
    let values = [
        ("seconds", seconds),
        ("device bytes", courses.total("device")),
        ("background bytes", courses.total("background")),
    ];
    let sample = Sample {
        case: step.case.clone(),
        round: step.round,
        commands,
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Sample::default()
    };
    Ok((sample, courses))
}
