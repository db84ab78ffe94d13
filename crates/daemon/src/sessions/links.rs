//! Links: processes that connect to others of this machine are introduced to them. Which stack a connection is for is decided as
//! the steering decides it: by the shares of a listener's members. What goes over a link, the daemon does not see.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use control::config::LeasedPorts;
use graph::StackId;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use shm::Segment;
use shm::attach::Refusal;
use shm::bell::forbid_descriptors;
use shm::book::BookWriter;
use shm::session::{Event, Introduce, Introduced, LinkPlace, Neighbour, Reply, TransportProtocol};

use super::guest::Attached;
use super::{Host, News, Sessions};
use crate::processes::{Answer, Debit, grow, invalid, no_resources, unknown};

/// A stack at one end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) process: u32,
    pub(super) stack: u32,
}

/// A link that there is.
#[derive(Debug)]
struct Link {
    /// Who has asked for it, and the other.
    ends: [End; 2],
}

/// All links.
#[derive(Debug, Default)]
pub(super) struct Links {
    list: BTreeMap<u32, Link>,
    /// The numbers of each process's.
    by_process: BTreeMap<u32, BTreeSet<u32>>,
    last: u32,
    /// Who leases which ports; made with the first link.
    book: Option<BookWriter>,
    /// What stands in it, or will: the stack that leases the range from a port on.
    leases: BTreeMap<u16, u32>,
}

/// What is to be said, and to be done before.
pub(super) struct Plan {
    answer: Introduced,
    /// Between whom a link is to be made, its place in the answer, and its memory.
    make: Option<([End; 2], usize, Debit)>,
    /// They are processes of two users.
    are_strangers: bool,
}

impl Links {
    /// A range of ports is leased to a stack; 0: to none.
    pub(super) fn note(&mut self, first: u16, stack: u32) {
        match stack {
            0 => self.leases.remove(&first),
            _ => self.leases.insert(first, stack),
        };
        if let Some(book) = &self.book {
            book.note(first, LeasedPorts::LEASE, stack);
        }
    }

    /// The stacks that a stack has links to, and the links' numbers.
    pub(super) fn of(&self, end: End) -> impl Iterator<Item = (u32, End)> {
        let numbers = self.by_process.get(&end.process).into_iter().flatten();
        numbers.filter_map(move |number| match self.list.get(number)?.ends {
            [one, other] if one == end => Some((*number, other)),
            [one, other] if other == end => Some((*number, one)),
            _ => None,
        })
    }

    fn count(&self, process: u32) -> usize {
        self.by_process.get(&process).map_or(0, BTreeSet::len)
    }

    /// A link more. Gives its number.
    fn add(&mut self, link: Link) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        for end in &link.ends {
            self.by_process.entry(end.process).or_default().insert(self.last);
        }
        self.list.insert(self.last, link);
        self.last
    }

    fn remove(&mut self, number: u32) {
        let Some(link) = self.list.remove(&number) else { return };
        for end in &link.ends {
            if let Some(numbers) = self.by_process.get_mut(&end.process) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_process.remove(&end.process);
                }
            }
        }
    }

    fn book(&mut self) -> Result<OwnedFd, Refusal> {
        if self.book.is_none() {
            let book = BookWriter::new().map_err(no_resources)?;
            let noted = self.leases.iter();
            noted.for_each(|(first, stack)| book.note(*first, LeasedPorts::LEASE, *stack));
            self.book = Some(book);
        }
        let book = self.book.as_ref().ok_or_else(|| no_resources("no book of ports"))?;
        book.as_fd().try_clone_to_owned().map_err(no_resources)
    }
}

impl Sessions {
    /// Who serves what a stack is about to connect to, and which link can be made next.
    fn plan(&mut self, id: u32, asked: &Introduce) -> Result<Plan, Refusal> {
        let most = usize::from(self.config.load().links);
        if most == 0 {
            return Err(no_resources("sessions.links is 0: there are no links"));
        }
        let own = End { process: id, stack: asked.stack };
        if self.stack(id, asked.stack)?.is_lodged() {
            return Err(no_resources("a stack on a stack worker has no links"));
        }
        let uid = self.session(id)?.uid();
        let destination = (asked.destination.ip().to_canonical(), asked.destination.port());
        let (address, port) = destination;
        let serving = self.steering.serving(TransportProtocol::Tcp, address, port);
        let serving = serving.ok_or_else(|| unknown(format!("nobody serves port {port}")))?;
        let bytes = LinkPlace::bytes().map_err(no_resources)?;
        let has_room = self.links.count(id) < most;
        let mut plan = Plan {
            answer: Introduced {
                address: (serving.bind.address, serving.bind.port).into(),
                only_v6: serving.bind.only_v6,
                neighbours: Vec::new(),
                made: None,
            },
            make: None,
            are_strangers: false,
        };
        let mut known = BTreeMap::new();
        for (number, other) in self.links.of(own) {
            known.entry(other).or_insert(number);
        }
        for member in serving.members.iter().filter(|member| member.buckets > 0) {
            let other = self.end_of(member.stack);
            let link = other.and_then(|other| known.get(&other)).copied();
            // A process needs no link to itself; neither that of the daemon's own stack nor a stack worker takes one.
            let can = |other: &End| {
                other.process != id
                    && !self.is_parking(other.process)
                    && !self.is_lodged(other)
                    && self.links.count(other.process) < most
                    && self.afford_link(uid, other, bytes)
            };
            let other = other.filter(|other| link.is_none() && has_room && can(other));
            plan.answer.neighbours.push(Neighbour {
                share: member.buckets as u16,
                link,
                pending: other.is_some(),
            });
            if let (Some(other), None) = (other, &plan.make) {
                let other_uid = self.session(other.process)?.uid();
                let debit = self.charge_both([uid, other_uid], bytes)?;
                plan.make = Some(([own, other], plan.answer.neighbours.len() - 1, debit));
                plan.are_strangers = other_uid != uid;
            }
        }
        Ok(plan)
    }

    fn afford_link(&self, uid: u32, other: &End, bytes: usize) -> bool {
        let other = self.list.get(&other.process);
        other.is_some_and(|other| self.afford([uid, other.uid()], bytes).is_ok())
    }

    fn is_lodged(&self, end: &End) -> bool {
        let stacks = self.list.get(&end.process).map(|session| &session.stacks);
        stacks.and_then(|stacks| stacks.get(&end.stack)).is_some_and(super::Stack::is_lodged)
    }

    fn end_of(&self, id: StackId) -> Option<End> {
        let (process, _, stack) = self.owner(id)?;
        stack.is_started().then_some(End { process, stack: id.number() })
    }

    /// A link was made: the other end is told. Gives the asker's, and the book.
    fn link(
        &mut self,
        ends: [End; 2],
        segment: &Arc<Segment>,
        theirs: OwnedFd,
    ) -> Result<(LinkPlace, OwnedFd), Refusal> {
        let [own, other] = ends;
        // It was checked before the memory was made; others may have been linked since.
        let most = usize::from(self.config.load().links);
        if ends.iter().any(|end| self.links.count(end.process) >= most) {
            return Err(no_resources(format!("sessions.links allows one process {most} links")));
        }
        let (book, another) = (self.links.book()?, self.links.book()?);
        self.stack(own.process, own.stack)?;
        self.stack(other.process, other.stack)?;
        let news = self.session(other.process)?.news.clone();
        let number = self.links.add(Link { ends });
        let place =
            |end: End, peer: End| LinkPlace { link: number, stack: end.stack, peer: peer.stack };
        let told = News {
            reply: Reply::Event(Event::Linked(place(other, own))),
            segment: Some(Arc::clone(segment)),
            bells: vec![theirs, another],
        };
        if news.try_send(told).is_err() {
            self.links.remove(number);
            return Err(no_resources("the other process does not listen"));
        }
        Ok((place(own, other), book))
    }

    /// A process has closed a link, or wants none.
    pub(super) fn unlink(&mut self, id: u32, number: u32) -> Result<(), Refusal> {
        let link = self.links.list.get(&number);
        let ends =
            link.map(|link| link.ends).filter(|ends| ends.iter().any(|end| end.process == id));
        let ends =
            ends.ok_or_else(|| unknown(format!("there is no link {number} of this process")))?;
        self.links.remove(number);
        for end in ends.iter().filter(|end| end.process != id) {
            self.tell_unlinked(end.process, number);
        }
        Ok(())
    }

    /// Ends the links of those that have ended.
    pub(super) fn unlink_all(&mut self, has_ended: impl Fn(&End) -> bool) {
        let over = |link: &Link| link.ends.iter().any(&has_ended);
        let numbers: Vec<(u32, [End; 2])> = self
            .links
            .list
            .iter()
            .filter(|(_, link)| over(link))
            .map(|(n, l)| (*n, l.ends))
            .collect();
        for (number, ends) in numbers {
            self.links.remove(number);
            for end in ends.iter().filter(|end| !has_ended(end)) {
                self.tell_unlinked(end.process, number);
            }
        }
    }

    /// Who does not hear it sees that the bell has hung up.
    fn tell_unlinked(&self, process: u32, number: u32) {
        if let Some(session) = self.list.get(&process) {
            let _ = session.news.try_send(Reply::Event(Event::Unlinked(number)).into());
        }
    }
}

impl<H: Host> Attached<H> {
    /// A stack is about to connect to others.
    pub(super) async fn introduce(
        &self,
        id: u32,
        asked: Introduce,
    ) -> Result<Answer<Reply>, Refusal> {
        let Plan { mut answer, make, are_strangers } =
            self.charge(move |lent| lent.sessions.plan(id, &asked)).await?;
        let Some((ends, at, debit)) = make else { return Ok(Reply::Introduced(answer).into()) };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (ours, theirs) = pair.map_err(|error| {
            no_resources(format!("a bell: {error}; raise the daemon's LimitNOFILE"))
        })?;
        if !(forbid_descriptors(&ours) && forbid_descriptors(&theirs)) && are_strangers {
            // One user's process could have another's wait, by descriptors that it sends over the bell.
            answer.neighbours.iter_mut().for_each(|neighbour| neighbour.pending = false);
            return Ok(Reply::Introduced(answer).into());
        }
        let segment = grow(&format!("millrace-link-{id}"), debit, &self.holders).await?;
        let memory = Arc::clone(&segment);
        let link = move |lent: super::Lent<'_>| lent.sessions.link(ends, &memory, theirs);
        let (made, book) = self.ask(link).await?;
        let neighbour = answer.neighbours.get_mut(at).ok_or_else(|| invalid("no neighbour"))?;
        (neighbour.link, neighbour.pending, answer.made) = (Some(made.link), false, Some(made));
        let (reply, bells) = (Reply::Introduced(answer), vec![ours, book]);
        Ok(Answer { reply, segment: Some(segment), bells })
    }
}

#[cfg(test)]
mod tests;
