//! Streams that begin with the same options.

use std::sync::Arc;

use transport::ImportError;
use transport::moving::{Carried, Reader, Writer};

use crate::errno::Errno;
use crate::session::{Domain, Id, Kind, Role, Session};
use crate::sessions::Sessions;
use crate::settings::Settings;

/// The options of a stream, for others to begin with.
#[derive(Debug, Clone)]
pub struct Template {
    domain: Domain,
    settings: Arc<Settings>,
}

impl Template {
    /// What is set of those that are opened like it.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Carried for Template {
    fn put(&self, to: &mut Writer) {
        self.domain.put(to);
        self.settings.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        let domain = Domain::take(from)?;
        Ok(Self { domain, settings: Arc::new(Settings::take(from)?) })
    }
}

impl Sessions {
    /// What is set of a stream that is neither bound nor connected.
    ///
    /// # Errors
    /// [`Errno::INVAL`] of other sockets, [`Errno::BADF`].
    pub fn template(&self, id: Id) -> Result<Template, Errno> {
        let session = self.get(id)?;
        if session.role != Role::Fresh || session.kind() != Kind::Stream {
            return Err(Errno::INVAL);
        }
        Ok(Template { domain: session.domain, settings: Arc::clone(&session.settings) })
    }

    /// One that comes from elsewhere: what is like others' is kept once.
    pub(crate) fn adopt(&mut self, template: &Template) -> Template {
        let settings = self.shelf.share(Settings::clone(&template.settings));
        Template { domain: template.domain, settings }
    }

    /// Opens a stream at a place that is free, with the same options.
    ///
    /// # Errors
    /// [`Errno::EXIST`] when there is a session at this place.
    pub fn open_like(&mut self, id: Id, template: &Template) -> Result<(), Errno> {
        let settings = Arc::clone(&template.settings);
        self.put(id, Session::new(template.domain, Role::Fresh, settings))
    }
}
