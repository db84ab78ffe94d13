//! A plan as sections of `millrace.toml`, the reasons as comments.

use std::fmt;

use super::Plan;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "# {}", plain(note))?;
        }
        let cores: Vec<_> = self.workers.iter().map(|worker| worker.core).collect();
        writeln!(f, "[workers]")?;
        for worker in &self.workers {
            writeln!(f, "# core {}: {}", worker.core, plain(&worker.why))?;
        }
        writeln!(f, "cores = {cores:?}")?;
        for port in &self.ports {
            writeln!(f, "\n# {}", plain(&port.why))?;
            writeln!(
                f,
                "[[port]]\nname = {}\ndevice = {}",
                quoted(&port.port),
                quoted(&port.device)
            )?;
            writeln!(f, "rx-queues = {}", port.queues.len())?;
            let queue = |(queue, core)| format!("{{ queue = {queue}, core = {core} }}");
            let queues: Vec<_> = port.queues.iter().enumerate().map(queue).collect();
            writeln!(f, "queues = [{}]", queues.join(", "))?;
            if !port.software_rss.is_empty() {
                writeln!(f, "software-rss = {:?}", port.software_rss)?;
            }
        }
        Ok(())
    }
}

/// On one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let text = plain(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}
