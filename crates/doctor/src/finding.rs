//! What a check finds.

use serde::Serialize;

use crate::change::Change;
use crate::root::Unread;

/// What a check is about, and why it matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Topic {
    pub(crate) group: Group,
    pub(crate) name: &'static str,
    /// The reason, with the effect to expect.
    pub(crate) why: &'static str,
    /// Where reason and figures come from.
    pub(crate) source: &'static str,
}

/// Parts of a machine, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Cores, and what else runs on them.
    Cores,
    /// Frequency, turbo, idle states.
    Power,
    /// Hugepages and memory that the kernel moves.
    Memory,
    /// Network cards and the ports on them.
    Ports,
    /// Interrupts.
    Interrupts,
    /// Services.
    Services,
    /// Choices of the kernel.
    Kernel,
    /// Limits of the process.
    Limits,
    /// Settings of the BIOS that the kernel does not show.
    Firmware,
}

impl Group {
    /// Its heading.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Cores => "Cores",
            Self::Power => "Power and frequency",
            Self::Memory => "Memory",
            Self::Ports => "Ports",
            Self::Interrupts => "Interrupts",
            Self::Services => "Services",
            Self::Kernel => "Kernel",
            Self::Limits => "Limits",
            Self::Firmware => "BIOS",
        }
    }
}

/// How it stands with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// Another setting would give more.
    CouldBeBetter,
    /// Costs much of the rate.
    Bad,
    /// Has a price and a benefit: for people to weigh.
    Choice,
    /// What it is cannot be told from here.
    CannotBeTold,
    /// Means nothing on this machine.
    DoesNotApply,
}

impl State {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::CouldBeBetter => "could be better",
            Self::Bad => "bad",
            Self::Choice => "your choice",
            Self::CannotBeTold => "cannot be told",
            Self::DoesNotApply => "does not apply",
        }
    }

    /// Whether something should be changed.
    #[must_use]
    pub const fn is_complaint(self) -> bool {
        matches!(self, Self::CouldBeBetter | Self::Bad)
    }
}

/// What brings the better setting about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Remedy {
    /// A command for root's shell; lasts until the next boot, unless it says otherwise.
    Command(String),
    /// Words for the kernel's command line, in force from the next boot.
    KernelParameter(String),
    /// A setting of the BIOS.
    Firmware(String),
    /// Keys of Millrace's configuration.
    Configuration(String),
    /// What only the host of this virtual machine can do.
    Host(String),
    /// What people do by hand.
    Manual(String),
}

impl Remedy {
    /// Label, and the text itself.
    #[must_use]
    pub fn shown(&self) -> (&'static str, &str) {
        match self {
            Self::Command(text) => ("run", text),
            Self::KernelParameter(text) => ("kernel parameter", text),
            Self::Firmware(text) => ("BIOS", text),
            Self::Configuration(text) => ("configuration", text),
            Self::Host(text) => ("only the host can", text),
            Self::Manual(text) => ("do", text),
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Part of the machine.
    pub group: Group,
    /// What was looked at.
    pub name: &'static str,
    /// Which one, where there are several: a node, a network card, a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How it stands.
    pub state: State,
    /// What is; why that cannot be told; why it does not apply.
    pub is: String,
    /// What would be better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<String>,
    /// Why, with the effect to expect.
    pub why: &'static str,
    /// Where reason and figures come from.
    pub source: &'static str,
    /// What brings it about.
    pub remedies: Vec<Remedy>,
    /// What `--apply` does: only what can be undone.
    pub changes: Vec<Change>,
}

impl Finding {
    fn new(topic: Topic, state: State, is: String) -> Self {
        let Topic { group, name, why, source } = topic;
        let (subject, better, remedies, changes) = (None, None, Vec::new(), Vec::new());
        Self { group, name, subject, state, is, better, why, source, remedies, changes }
    }

    pub(crate) fn good(topic: Topic, is: impl Into<String>) -> Self {
        Self::new(topic, State::Good, is.into())
    }

    pub(crate) fn could_be_better(
        topic: Topic,
        is: impl Into<String>,
        better: impl Into<String>,
    ) -> Self {
        Self { better: Some(better.into()), ..Self::new(topic, State::CouldBeBetter, is.into()) }
    }

    pub(crate) fn bad(topic: Topic, is: impl Into<String>, better: impl Into<String>) -> Self {
        Self { better: Some(better.into()), ..Self::new(topic, State::Bad, is.into()) }
    }

    pub(crate) fn choice(topic: Topic, is: impl Into<String>, better: impl Into<String>) -> Self {
        Self { better: Some(better.into()), ..Self::new(topic, State::Choice, is.into()) }
    }

    pub(crate) fn does_not_apply(topic: Topic, reason: impl Into<String>) -> Self {
        Self::new(topic, State::DoesNotApply, reason.into())
    }

    pub(crate) fn cannot_be_told(topic: Topic, reason: impl Into<String>) -> Self {
        Self::new(topic, State::CannotBeTold, reason.into())
    }

    pub(crate) fn unread(topic: Topic, unread: &Unread) -> Self {
        Self::cannot_be_told(topic, unread.to_string())
    }

    pub(crate) fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    pub(crate) fn better(self, better: impl Into<String>) -> Self {
        Self { better: Some(better.into()), ..self }
    }

    pub(crate) fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    pub(crate) fn changes(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }
}
