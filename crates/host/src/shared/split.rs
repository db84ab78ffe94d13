//! Calls in two parts, so that nothing of the process's is locked while the stack's worker is asked. The first part asks, and gives
//! the question. When that is answered, the same call is made again; it does not ask, and goes on with the answer.

use super::asking::{Answer, Question, Split};
use super::remote::Remote;
use crate::errno::Errno;
use crate::session::Id;

impl Remote {
    /// The next call asks once at most, and does not wait: it gives [`Errno::IOCBQUEUED`] then, and [`Self::end_call`] the question.
    pub fn begin_call(&mut self) {
        self.split = Some(Split::default());
    }

    /// The call that has asked is made again. On a stack that is another by now, it asks anew.
    pub fn resume_call(&mut self, answer: Answer) {
        let is_ours = answer.is_of(&self.asking);
        let answer = if is_ours { answer.bytes } else { None };
        self.split = Some(Split { question: None, answer });
    }

    /// The call is over: those from now on wait again. Gives what it has asked, if it is to be made again.
    pub fn end_call(&mut self) -> Option<Question> {
        self.split.take()?.question
    }

    /// Whether the call goes on with an answer. Then that counts, whatever became of the session in between.
    pub(super) fn is_answered(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.answer.is_some())
    }

    /// Whether the call has not asked yet, for want of room or because others have: the worker knows nothing of it.
    pub(super) fn has_to_ask(&self) -> bool {
        let question = self.split.as_ref().and_then(|split| split.question.as_ref());
        question.is_some_and(|question| question.number().is_none())
    }

    /// Whether a call may be about a session.
    pub(super) fn find(&mut self, id: Id) -> Result<(), Errno> {
        if self.is_answered() {
            return Ok(());
        }
        self.own(id).map(|_| ())
    }
}
