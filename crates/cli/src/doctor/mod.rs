//! `millrace doctor`: what this host could do better for the data plane.

mod apply;
mod known;
mod show;

use std::process::ExitCode;

use control::client::Client;
use doctor::checks;
use doctor::plan::plan;

use crate::args::{Advice, Doctor};
use crate::failure::Failure;
use crate::output;

/// Exit status when something is bad or could be better.
const COMPLAINTS: u8 = 3;

pub(crate) async fn run(client: &Client, json: bool, options: Doctor) -> Result<ExitCode, Failure> {
    if options.what.is_some() && options.apply {
        return Err(Failure::Usage("doctor plan changes nothing; leave --apply out".into()));
    }
    let known = known::look(client, &options).await?;
    if let Some(Advice::Plan { workers }) = options.what {
        let plan = plan(&known.machine, &known.setup.ports, workers);
        if json {
            output::json(&plan)?;
        } else {
            output::line(plan.to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let findings = checks::all(&known.machine, &known.setup);
    if options.apply {
        return apply::run(findings, json, &options);
    }
    if json {
        show::json(&known, &findings)?;
    } else {
        show::text(&known, &findings, options.verbose)?;
    }
    let complaints = findings.iter().any(|finding| finding.state.is_complaint());
    Ok(if complaints { ExitCode::from(COMPLAINTS) } else { ExitCode::SUCCESS })
}
