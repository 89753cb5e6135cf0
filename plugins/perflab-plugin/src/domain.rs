//! Discovery and matching, for plug-ins whose library does not match endpoints by DDS rules.
//!
//! The reader's side decides. When it knows a writer that matches by topic, type and QoS, it prepares for the
//! messages and asks the writer's side to start (`match`); the writer's side adds the reader to its targets
//! and answers with its attachment (`start`). So a reader gets exactly the messages from which the writer
//! starts to count it. A [`Medium`] discovers participants and transports letters: the library's own
//! mechanism, or [`crate::Neighbours`].
//!
//! Everything runs on one thread, "<plug-in>.control", which also calls `on_event`.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use crate::interface::*;
use crate::{json_list, locked, Callbacks, EndpointSettings, Error, Event, Host, Result};

/// 8 random bytes of the process, 4 of the participant, and 4 that number its endpoints; 0 is the participant
/// itself.
pub type Identity = [u8; 16];

const PROCESS_BYTES: usize = 8;
const PARTICIPANT_BYTES: usize = 12;

/// The participant that an endpoint belongs to.
pub fn participant_of(endpoint: &Identity) -> Identity {
    let mut participant = *endpoint;
    participant[PARTICIPANT_BYTES..].fill(0);
    participant
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer has that size. getrandom() returns so few bytes all at once or not at all.
    let size = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    assert!(size == N as isize, "no random numbers for an identity");
    bytes
}

fn next_participant() -> Identity {
    static PROCESS: OnceLock<[u8; PROCESS_BYTES]> = OnceLock::new();
    let mut identity = [0; 16];
    identity[..PROCESS_BYTES].copy_from_slice(PROCESS.get_or_init(random));
    identity[PROCESS_BYTES..PARTICIPANT_BYTES].copy_from_slice(&random::<4>());
    identity
}

/// What others know about a writer or reader.
#[derive(Clone)]
pub struct Endpoint {
    pub writes: bool,
    pub fixed_size: u64,
    pub topic: CString,
    pub type_name: CString,
    pub user_data: Vec<u8>,
    pub qos: perflab_qos,
}

impl Endpoint {
    pub fn new(writes: bool, settings: &EndpointSettings) -> Result<Endpoint> {
        let name = |text: &str| CString::new(text).map_err(|_| Error::bad_option("a name with a zero in it"));
        Ok(Endpoint {
            writes,
            fixed_size: settings.fixed_size as u64,
            topic: name(settings.topic)?,
            type_name: name(settings.type_name)?,
            user_data: settings.user_data.clone(),
            qos: settings.qos,
        })
    }

    /// The wire format, between plug-ins built together; runs of zeros, frequent in the QoS, are stored as
    /// their length.
    pub fn encoded(&self) -> Vec<u8> {
        let mut plain = vec![u8::from(self.writes)];
        plain.extend(self.fixed_size.to_le_bytes());
        for part in [self.topic.to_bytes(), self.type_name.to_bytes(), &self.user_data] {
            plain.extend((part.len() as u32).to_le_bytes());
            plain.extend(part);
        }
        // SAFETY: plain data.
        plain.extend(unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(&self.qos).cast::<u8>(), size_of::<perflab_qos>())
        });
        let mut packed = Vec::new();
        let mut rest = &plain[..];
        while let Some(&byte) = rest.first() {
            let run = if byte == 0 { rest.iter().take(255).take_while(|b| **b == 0).count() } else { 1 };
            packed.push(byte);
            if byte == 0 {
                packed.push(run as u8);
            }
            rest = &rest[run..];
        }
        packed
    }

    /// None if the bytes are not an endpoint.
    pub fn decoded(packed: &[u8]) -> Option<Endpoint> {
        let mut plain = Vec::new();
        let mut bytes = packed.iter();
        while let Some(&byte) = bytes.next() {
            let run = if byte == 0 { *bytes.next()? as usize } else { 1 };
            plain.resize(plain.len() + run, byte);
        }
        let mut rest = &plain[..];
        let writes = *rest.split_off_first()? != 0;
        let fixed_size = u64::from_le_bytes(rest.split_off(..8)?.try_into().ok()?);
        let mut part = || -> Option<Vec<u8>> {
            let size = u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?);
            rest.split_off(..size as usize).map(<[u8]>::to_vec)
        };
        let (topic, type_name, user_data) = (part()?, part()?, part()?);
        if rest.len() != size_of::<perflab_qos>() {
            return None;
        }
        // SAFETY: of that size; any bytes are valid except for the flags, which are checked first.
        let qos = unsafe {
            let mut qos = std::mem::MaybeUninit::<perflab_qos>::zeroed();
            std::ptr::copy_nonoverlapping(rest.as_ptr(), qos.as_mut_ptr().cast(), rest.len());
            for flag in [std::mem::offset_of!(perflab_qos, coherent), std::mem::offset_of!(perflab_qos, ordered)] {
                if rest[flag] > 1 {
                    return None;
                }
            }
            qos.assume_init()
        };
        let (topic, type_name) = (CString::new(topic).ok()?, CString::new(type_name).ok()?);
        Some(Endpoint { writes, fixed_size, topic, type_name, user_data, qos })
    }
}

/// A writer or reader of this participant. All functions run on the control thread.
pub trait Party: Send + Sync {
    /// Reader: it will match this writer; returns the attachment for the request.
    fn ask(&self, _writer: &Identity, _offered: &Endpoint) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
    /// Writer: it writes for this reader from now on; returns the attachment for the answer.
    fn add(&self, _reader: &Identity, _requested: &Endpoint, _asked: &[u8]) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
    /// Reader: the writer's answer.
    fn start(&self, _writer: &Identity, _answer: &[u8]) -> Result<()> {
        Ok(())
    }
    /// The peer, or its process, is gone.
    fn peer_gone(&self, peer: &Identity, was_matched: bool);
}

/// How participants discover each other and communicate.
pub trait Medium: Send + Sync {
    /// Announces to all current and future participants.
    fn announce(&self, endpoint: &Identity, encoded: &[u8]) -> Result<()>;
    fn withdraw(&self, endpoint: &Identity);
    /// In the order of the calls, and after earlier announcements.
    fn send(&self, participant: &Identity, letter: &[u8]) -> Result<()>;
}

/// Through which a medium reports. Thread-safe; never waits.
#[derive(Clone)]
pub struct Doorbell {
    own: Identity,
    tasks: Sender<Task>,
}

enum Task {
    ParticipantFound(Identity),
    ParticipantLost(Identity),
    Found(Identity, Endpoint),
    Gone(Identity),
    Letter(Vec<u8>),
    Entered(Identity),
    Stop,
}

impl Doorbell {
    pub fn participant_found(&self, participant: Identity) {
        self.pass(participant, Task::ParticipantFound(participant));
    }
    pub fn participant_lost(&self, participant: Identity) {
        self.pass(participant, Task::ParticipantLost(participant));
    }
    /// Invalid data are ignored.
    pub fn endpoint_found(&self, identity: Identity, encoded: &[u8]) {
        if let Some(endpoint) = Endpoint::decoded(encoded) {
            self.pass(identity, Task::Found(identity, endpoint));
        }
    }
    pub fn endpoint_gone(&self, identity: Identity) {
        self.pass(identity, Task::Gone(identity));
    }
    pub fn letter(&self, letter: &[u8]) {
        let _ = self.tasks.send(Task::Letter(letter.to_vec()));
    }
    // Announcements of this participant itself are ignored; it knows them anyway.
    fn pass(&self, who: Identity, task: Task) {
        if participant_of(&who) != self.own {
            let _ = self.tasks.send(task);
        }
    }
}

pub struct Domain {
    shared: Arc<Shared>,
    control: Option<JoinHandle<()>>,
}

struct Shared {
    plugin: &'static str,
    host: Host,
    ignore_local_endpoints: bool,
    own: Identity,
    medium: Box<dyn Medium>,
    tasks: Sender<Task>,
    made: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    parties: BTreeMap<Identity, Entity>,
    endpoints: BTreeMap<Identity, Endpoint>, // of all participants, including this one
    participants: HashSet<Identity>,
    problems: Vec<String>,
}

struct Entity {
    party: Arc<dyn Party>,
    info: Endpoint,
    callbacks: Callbacks,
    has_entered: bool, // known to the control thread; before that it is matched with no one, so that it is
                       // matched with each once
    matched: HashSet<Identity>,
}

type Events = Vec<(Option<Callbacks>, Event)>; // none: for the host

impl Domain {
    /// `medium` creates the connection to the others, and reports through the doorbell.
    pub fn join(
        plugin: &'static str,
        host: Host,
        ignore_local_endpoints: bool,
        medium: impl FnOnce(Identity, Doorbell) -> Result<Box<dyn Medium>>,
    ) -> Result<Domain> {
        let own = next_participant();
        let (tasks, todo) = channel();
        let medium = medium(own, Doorbell { own, tasks: tasks.clone() })?;
        let shared = Arc::new(Shared {
            plugin,
            host,
            ignore_local_endpoints,
            own,
            medium,
            tasks,
            made: AtomicU32::new(0),
            state: Mutex::default(),
        });
        let on_thread = shared.clone();
        let control = std::thread::Builder::new()
            .name(format!("{plugin}.control"))
            .spawn(move || on_thread.run(&todo))
            .map_err(|why| Error::failed(format!("{plugin}: no thread is left: {why}")))?;
        Ok(Domain { shared, control: Some(control) })
    }

    pub fn next_identity(&self) -> Identity {
        let mut identity = self.shared.own;
        let number = self.shared.made.fetch_add(1, Ordering::Relaxed) + 1;
        identity[PARTICIPANT_BYTES..].copy_from_slice(&number.to_be_bytes());
        identity
    }

    /// Makes it known and matched until the returned membership is dropped.
    pub fn enter(
        &self,
        identity: Identity,
        info: Endpoint,
        party: Arc<dyn Party>,
        callbacks: Callbacks,
    ) -> Result<Membership> {
        let encoded = info.encoded();
        let entity = Entity { party, info, callbacks, has_entered: false, matched: HashSet::new() };
        locked(&self.shared.state).parties.insert(identity, entity);
        let announced = self.shared.medium.announce(&identity, &encoded);
        if announced.is_err() {
            locked(&self.shared.state).parties.remove(&identity);
        }
        announced?;
        let _ = self.shared.tasks.send(Task::Entered(identity));
        Ok(Membership { identity, shared: self.shared.clone() })
    }

    pub fn remote_endpoints(&self, each: &mut dyn FnMut(&perflab_remote_endpoint)) {
        let state = locked(&self.shared.state);
        for (identity, endpoint) in &state.endpoints {
            if participant_of(identity) == self.shared.own {
                continue;
            }
            let bytes = |data: &[u8]| perflab_bytes { data: data.as_ptr().cast(), size: data.len() };
            each(&perflab_remote_endpoint {
                identity: perflab_identity { bytes: *identity },
                writes: endpoint.writes,
                topic: endpoint.topic.as_ptr(),
                r#type: endpoint.type_name.as_ptr(),
                user_data: bytes(&endpoint.user_data),
                topic_data: bytes(&[]),
                group_data: bytes(&[]),
            });
        }
    }

    pub fn host(&self) -> &Host {
        &self.shared.host
    }

    /// For `describe()`: members of a JSON object.
    pub fn described(&self) -> String {
        let problems = json_list(&locked(&self.shared.state).problems);
        format!("\"participant\":\"{}\",\"problems\":{problems}", to_hex(&self.shared.own))
    }
}

/// A writer or reader in its domain. After it is dropped, none of its callbacks runs.
pub struct Membership {
    identity: Identity,
    shared: Arc<Shared>,
}

impl Membership {
    pub fn identity(&self) -> Identity {
        self.identity
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let entity = locked(&self.shared.state).parties.remove(&self.identity);
        if let Some(entity) = entity {
            entity.callbacks.close();
        }
        self.shared.medium.withdraw(&self.identity);
        let _ = self.shared.tasks.send(Task::Gone(self.identity));
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = self.shared.tasks.send(Task::Stop);
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
    }
}

const MATCH: u8 = 1;
const START: u8 = 2;

impl Shared {
    fn run(&self, todo: &Receiver<Task>) {
        while let Ok(task) = todo.recv() {
            let mut events = Events::new();
            if matches!(task, Task::Stop) {
                return;
            }
            self.handle(task, &mut locked(&self.state), &mut events);
            for (callbacks, event) in events {
                callbacks.as_ref().unwrap_or(self.host.discovery()).event(&self.host, &event);
            }
        }
    }

    fn handle(&self, task: Task, state: &mut State, events: &mut Events) {
        match task {
            Task::ParticipantFound(participant) => self.meet(participant, state, events),
            Task::ParticipantLost(participant) => {
                let its = |identity: &&Identity| participant_of(identity) == participant;
                for endpoint in state.endpoints.keys().filter(its).copied().collect::<Vec<_>>() {
                    self.forget(endpoint, state, events);
                }
                if state.participants.remove(&participant) {
                    events.push((None, said(PERFLAB_PARTICIPANT_LOST, &participant, None)));
                }
            }
            Task::Found(identity, endpoint) => {
                self.meet(participant_of(&identity), state, events);
                if state.endpoints.contains_key(&identity) {
                    return;
                }
                let kind = if endpoint.writes { PERFLAB_WRITER_FOUND } else { PERFLAB_READER_FOUND };
                events.push((None, said(kind, &identity, Some(&endpoint))));
                self.introduce(identity, endpoint, state, events);
            }
            Task::Entered(identity) => {
                let Some(entity) = state.parties.get_mut(&identity) else { return };
                entity.has_entered = true;
                let endpoint = entity.info.clone();
                for (other, remote) in state.endpoints.clone() {
                    self.consider(&identity, &other, &remote, state, events);
                }
                self.introduce(identity, endpoint, state, events);
            }
            Task::Gone(identity) => self.forget(identity, state, events),
            Task::Letter(letter) => self.read(&letter, state, events),
            Task::Stop => {}
        }
    }

    fn meet(&self, participant: Identity, state: &mut State, events: &mut Events) {
        if state.participants.insert(participant) {
            events.push((None, said(PERFLAB_PARTICIPANT_FOUND, &participant, None)));
        }
    }

    fn introduce(&self, identity: Identity, endpoint: Endpoint, state: &mut State, events: &mut Events) {
        for own in state.parties.keys().copied().collect::<Vec<_>>() {
            self.consider(&own, &identity, &endpoint, state, events);
        }
        state.endpoints.insert(identity, endpoint);
    }

    fn consider(&self, own: &Identity, identity: &Identity, remote: &Endpoint, state: &mut State, events: &mut Events) {
        if self.ignore_local_endpoints && identity[..PROCESS_BYTES] == self.own[..PROCESS_BYTES] {
            return;
        }
        let Some(entity) = state.parties.get(own).filter(|entity| entity.has_entered) else { return };
        let info = &entity.info;
        if info.writes == remote.writes || info.topic != remote.topic || info.type_name != remote.type_name {
            return;
        }
        let policy = match info.writes {
            true => incompatible_policy(&info.qos, &remote.qos),
            false => incompatible_policy(&remote.qos, &info.qos),
        };
        if let Some(policy) = policy {
            if policy == c"partition" {
                return; // not an error: different partitions
            }
            let mut event = said(PERFLAB_INCOMPATIBLE_QOS, identity, Some(info));
            event.policy = Some(policy);
            events.push((Some(entity.callbacks.clone()), event));
        } else if !info.writes {
            let asked = entity.party.ask(identity, remote);
            self.answer(MATCH, own, identity, asked, state);
        }
    }

    fn answer(&self, kind: u8, from: &Identity, to: &Identity, payload: Result<Vec<u8>>, state: &mut State) {
        let sent = payload.and_then(|payload| {
            let letter = [&[kind][..], from, to, &payload].concat();
            let participant = participant_of(to);
            if participant == self.own {
                let _ = self.tasks.send(Task::Letter(letter));
                return Ok(());
            }
            self.medium.send(&participant, &letter)
        });
        if let Err(failure) = sent {
            state.problems.push(failure.text().to_owned());
        }
    }

    fn read(&self, letter: &[u8], state: &mut State, events: &mut Events) {
        if letter.len() < 33 {
            state.problems.push(format!("{}: a letter of {} bytes", self.plugin, letter.len()));
            return;
        }
        let identity = |at: usize| -> Identity { std::array::from_fn(|i| letter[at + i]) };
        let (kind, from, to, payload) = (letter[0], identity(1), identity(17), &letter[33..]);
        let Some(endpoint) = state.endpoints.get(&from) else { return }; // gone meanwhile
        let Some(entity) = state.parties.get_mut(&to) else { return };
        if entity.info.writes != (kind == MATCH) || endpoint.writes == entity.info.writes {
            return;
        }
        let result = match kind {
            MATCH => entity.party.add(&from, endpoint, payload),
            _ => entity.party.start(&from, payload).map(|()| Vec::new()),
        };
        if result.is_ok() && entity.matched.insert(from) {
            events.push((Some(entity.callbacks.clone()), said(PERFLAB_MATCHED, &from, Some(&entity.info))));
        }
        match (kind, result) {
            (MATCH, answer) => self.answer(START, &to, &from, answer, state),
            (_, Err(failure)) => state.problems.push(failure.text().to_owned()),
            _ => {}
        }
    }

    fn forget(&self, identity: Identity, state: &mut State, events: &mut Events) {
        let Some(endpoint) = state.endpoints.remove(&identity) else { return };
        if participant_of(&identity) != self.own {
            let kind = if endpoint.writes { PERFLAB_WRITER_LOST } else { PERFLAB_READER_LOST };
            events.push((None, said(kind, &identity, None)));
        }
        for entity in state.parties.values_mut().filter(|entity| entity.info.writes != endpoint.writes) {
            let was_matched = entity.matched.remove(&identity);
            entity.party.peer_gone(&identity, was_matched);
            if was_matched {
                events.push((Some(entity.callbacks.clone()), said(PERFLAB_UNMATCHED, &identity, Some(&entity.info))));
            }
        }
    }
}

fn said(kind: perflab_event_kind, peer: &Identity, of: Option<&Endpoint>) -> Event {
    let name = |text: Option<&CStr>| text.map(CStr::to_owned).unwrap_or_default();
    Event {
        kind,
        peer: perflab_identity { bytes: *peer },
        topic: name(of.map(|endpoint| &*endpoint.topic)),
        type_name: name(of.map(|endpoint| &*endpoint.type_name)),
        policy: None,
        count: 1,
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    if text.len() % 2 != 0 {
        return None;
    }
    digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// A JSON string.
pub fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
