//! A reader: a subscriber to each matched writer, and a listener that they notify.
//!
//! No thread is between the writer and take(): messages are in the subscriber's buffer, in shared memory, and
//! are read in place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::FileDescriptorBased;
use iceoryx2::sample::Sample;
use perflab_plugin::interface::*;
use perflab_plugin::{
    locked, Callbacks, Domain, Endpoint, EndpointSettings, Error, Identity, Membership, Party, Result,
};

use crate::data::{Changed, DataThread, Watched};
use crate::service::{Head, Kind, Service, Services};
use crate::{failed, NAME};

type Message = Sample<Service, [u8], Head>;

pub struct Reader {
    member: Membership,
    pub core: Arc<Core>,
    thread: Option<Arc<DataThread>>,
}

pub struct Core {
    services: Arc<Services>,
    qos: perflab_qos,
    depth: usize,
    tells_identities: bool,
    callbacks: Callbacks,
    pub listener: Listener<Service>,
    matched: AtomicUsize,
    state: Mutex<State>,
    changed: Mutex<Option<Arc<Changed>>>, // the wait-set that it is attached to
}

#[derive(Default)]
struct State {
    sources: Vec<Source>,
    // Messages read ahead if there are several writers: the oldest comes first, and the history covers all of
    // them.
    ahead: VecDeque<(Identity, Message)>,
    taken: Vec<Option<Message>>,
    free: Vec<usize>,
}

struct Source {
    writer: Identity,
    subscriber: Subscriber<Service, [u8], Head>,
    keeps_history: bool,
    first: Option<i64>, // first message for this reader; none: unknown
    is_gone: bool,      // its remaining messages are still read
}

impl Source {
    fn next(&self) -> Result<Option<Message>> {
        let Some(first) = self.first else { return Ok(None) };
        loop {
            let message = self.subscriber.receive().map_err(|why| failed("cannot receive", why))?;
            match message {
                Some(early) if !self.keeps_history && early.user_header().sequence < first => continue,
                other => return Ok(other),
            }
        }
    }
}

impl Reader {
    pub fn new(
        domain: &Domain,
        services: &Arc<Services>,
        thread: impl FnOnce() -> Result<Arc<DataThread>>,
        settings: &EndpointSettings,
        callbacks: Callbacks,
    ) -> Result<Reader> {
        let qos = settings.qos;
        let most = services.limits.held;
        if qos.history == PERFLAB_KEEP_LAST && qos.depth as usize > most {
            return Err(Error::unsupported(format!(
                "{NAME}: topic '{}': history depth {} is refused: a reader keeps at most the last {most}; right would be less, \
                 or a larger buffer, of which that is a quarter",
                settings.topic, qos.depth
            )));
        }
        let info = Endpoint::new(false, settings)?;
        let id = domain.next_identity();
        let core = Arc::new(Core {
            services: services.clone(),
            qos,
            depth: services.depth_of(&qos),
            tells_identities: settings.related_samples,
            callbacks: callbacks.clone(),
            listener: services.listener(&id)?,
            matched: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Mutex::default(),
        });
        let thread = if callbacks.wants_data() { Some(thread()?) } else { None };
        if let Some(thread) = &thread {
            thread.watch(core.clone())?;
        }
        let member = domain.enter(id, info, Arc::new(ReaderParty(core.clone())), callbacks)?;
        Ok(Reader { member, core, thread })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.core.callbacks.close();
        if let Some(thread) = &self.thread {
            thread.forget(&*self.core);
        }
        let changed = locked(&self.core.changed).take();
        if let Some(changed) = changed {
            changed.forget(&self.core);
        }
        *locked(&self.core.state) = State::default();
    }
}

impl Core {
    pub fn is_called(&self) -> bool {
        self.callbacks.wants_data()
    }

    /// True if take() may have something to return. Available messages are received at once: iceoryx2 maps a
    /// message's memory on reception, and cannot after its writer has left.
    pub fn has_data(&self) -> bool {
        let mut state = locked(&self.state);
        let State { sources, ahead, .. } = &mut *state;
        if !ahead.is_empty() {
            return true;
        }
        for source in sources {
            match source.next() {
                Ok(Some(message)) => {
                    ahead.push_back((source.writer, message));
                    return true;
                }
                Ok(None) => {}
                Err(_) => return true, // take() reports the error
            }
        }
        false
    }

    pub fn attach(&self, changed: &Arc<Changed>) -> Result<()> {
        let mut place = locked(&self.changed);
        if place.is_some() {
            return Err(Error::failed(format!("{NAME}: the reader is attached to a wait-set already")));
        }
        *place = Some(changed.clone());
        Ok(())
    }
    pub fn detach(&self) {
        *locked(&self.changed) = None;
    }

    fn ring(&self) {
        if let Some(changed) = locked(&self.changed).as_ref() {
            changed.ring();
        }
    }

    /// Clears what made the listener readable.
    pub fn drain(&self) {
        // The first call may leave the datagram in the socket.
        while self.listener.try_wait(|_| {}).unwrap_or(0) > 0 {}
    }

    fn next(&self, state: &mut State) -> Result<Option<(Identity, Message)>> {
        if state.sources.len() > 1 || !state.ahead.is_empty() {
            self.read_ahead(state)?;
            return Ok(state.ahead.pop_front());
        }
        let Some(source) = state.sources.first() else { return Ok(None) };
        let message = source.next()?.map(|message| (source.writer, message));
        if message.is_none() && source.is_gone {
            state.sources.clear();
        }
        Ok(message)
    }

    fn read_ahead(&self, state: &mut State) -> Result<()> {
        let State { sources, ahead, .. } = state;
        let mut any = false;
        let mut problem = None;
        let room = self.services.limits.held;
        sources.retain(|source| loop {
            if ahead.len() >= room && self.qos.history == PERFLAB_KEEP_ALL {
                return true;
            }
            match source.next() {
                Ok(Some(message)) => {
                    ahead.push_back((source.writer, message));
                    any = true;
                }
                Ok(None) => return !source.is_gone,
                Err(failure) => {
                    problem = Some(failure);
                    return true;
                }
            }
        });
        if any {
            ahead.make_contiguous().sort_by_key(|(_, message)| message.user_header().published_ns);
        }
        if self.qos.history == PERFLAB_KEEP_LAST {
            ahead.drain(..ahead.len().saturating_sub(self.depth));
        }
        match problem {
            Some(failure) if ahead.is_empty() => Err(failure),
            _ => Ok(()),
        }
    }
}

impl Watched for Core {
    fn descriptor(&self) -> i32 {
        // SAFETY: the handle lives as long as the listener.
        unsafe { self.listener.file_descriptor().native_handle() }
    }
    fn notified(&self) {
        self.drain();
        self.callbacks.data();
        self.ring();
    }
}

impl perflab_plugin::Reader for Reader {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.member.identity() }
    }
    fn matched(&self) -> usize {
        self.core.matched.load(Ordering::SeqCst)
    }

    fn take(&self) -> Result<Option<perflab_sample>> {
        let mut state = locked(&self.core.state);
        let Some((writer, message)) = self.core.next(&mut state)? else { return Ok(None) };
        let (head, told) = (*message.user_header(), self.core.tells_identities);
        let (data, size) = (message.payload().as_ptr(), message.payload().len());
        let place = state.free.pop().unwrap_or(state.taken.len());
        if place == state.taken.len() {
            state.taken.push(None);
        }
        state.taken[place] = Some(message);
        let related = perflab_sample_identity {
            writer: perflab_identity { bytes: if told { head.related_writer } else { [0; 16] } },
            sequence: if told { head.related_sequence } else { 0 },
        };
        Ok(Some(perflab_sample {
            data,
            size,
            writer: perflab_identity { bytes: writer },
            sequence: if told { head.sequence } else { 0 },
            related,
            source_timestamp_ns: head.source_ns,
            reception_ns: PERFLAB_TIME_UNKNOWN,
            loan: std::ptr::without_provenance_mut(place + 1),
        }))
    }

    fn return_sample(&self, sample: &perflab_sample) {
        let place = sample.loan.addr() - 1;
        let mut state = locked(&self.core.state);
        state.taken[place] = None;
        state.free.push(place);
    }
}

struct ReaderParty(Arc<Core>);

impl Party for ReaderParty {
    fn ask(&self, writer: &Identity, offered: &Endpoint) -> Result<Vec<u8>> {
        let core = &self.0;
        let messages = core.services.messages(writer, offered, Kind::of_reader(&core.qos))?;
        let source = Source {
            writer: *writer,
            subscriber: core.services.subscriber(&messages, offered, &core.qos)?,
            keeps_history: core.qos.durability == PERFLAB_TRANSIENT_LOCAL,
            first: None,
            is_gone: false,
        };
        locked(&core.state).sources.push(source);
        Ok(Vec::new())
    }

    fn start(&self, writer: &Identity, answer: &[u8]) -> Result<()> {
        let core = &self.0;
        let first = answer.try_into().map(i64::from_le_bytes);
        let first = first.map_err(|_| Error::failed(format!("{NAME}: a letter without a number")))?;
        {
            let mut state = locked(&core.state);
            let Some(source) = state.sources.iter_mut().find(|source| source.writer == *writer) else { return Ok(()) };
            // While the writer certainly exists: what is mapped now outlives it.
            source.subscriber.update_connections().map_err(|why| failed("cannot reach a writer", why))?;
            if source.first.replace(first).is_none() && !source.is_gone {
                core.matched.fetch_add(1, Ordering::SeqCst);
            }
        }
        // Messages that came before the first number was known woke nobody.
        if core.has_data() {
            core.callbacks.data();
            core.ring();
        }
        Ok(())
    }

    fn peer_gone(&self, peer: &Identity, _was_matched: bool) {
        let core = &self.0;
        let mut state = locked(&core.state);
        let Some(at) = state.sources.iter().position(|source| source.writer == *peer && !source.is_gone) else {
            return;
        };
        if state.sources[at].first.is_none() {
            state.sources.remove(at);
            return;
        }
        core.matched.fetch_sub(1, Ordering::SeqCst);
        state.sources[at].is_gone = true; // until take() finds no further message of it
    }
}
