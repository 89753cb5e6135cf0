//! A writer: a publisher in each of its services with readers, and a notifier for each reader.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use perflab_plugin::interface::*;
use perflab_plugin::{
    locked, monotonic_after, wall_ns, Callbacks, Domain, Endpoint, EndpointSettings, Error, Identity, Membership,
    Party, Result,
};

use crate::service::{Head, Kind, Service, Services, KINDS};
use crate::{failed, NAME};

type Room = SampleMutUninit<Service, [MaybeUninit<u8>], Head>;

pub struct Writer {
    member: Membership,
    core: Arc<Core>,
}

struct Core {
    id: Identity,
    info: Endpoint,
    services: Arc<Services>,
    lends: bool,
    readers: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    lent: HashMap<usize, (Kind, Room)>,
    targets: Vec<Target>,
    outlets: [Option<Publisher<Service, [u8], Head>>; 2],
    next: i64,
    stamp_ns: i64, // of the next message; 0: not set
}

struct Target {
    reader: Identity,
    kind: Kind,
    notifier: Notifier<Service>,
}

impl Writer {
    pub fn new(
        domain: &Domain,
        services: &Arc<Services>,
        settings: &EndpointSettings,
        callbacks: Callbacks,
    ) -> Result<Writer> {
        let (topic, qos) = (settings.topic, &settings.qos);
        if settings.loans && settings.fixed_size == 0 {
            return Err(Error::unsupported(format!(
                "{NAME}: topic '{topic}' shall pass loaned messages, and they have no fixed size; right would be a type of a \
                 fixed size"
            )));
        }
        let keeps = qos.durability == PERFLAB_TRANSIENT_LOCAL;
        let most = services.limits.buffer;
        if keeps && (qos.history == PERFLAB_KEEP_ALL || qos.depth as usize > most) {
            return Err(Error::unsupported(format!(
                "{NAME}: topic '{topic}': durability transient_local of a writer that keeps more than {most} messages is \
                 refused; right would be history keep_last of at most that, or the option buffer"
            )));
        }
        let info = Endpoint::new(true, settings)?;
        let id = domain.next_identity();
        let core = Arc::new(Core {
            id,
            info: info.clone(),
            services: services.clone(),
            lends: settings.loans,
            readers: AtomicUsize::new(0),
            state: Mutex::new(State {
                lent: HashMap::new(),
                targets: Vec::new(),
                outlets: [None, None],
                next: 1,
                stamp_ns: 0,
            }),
        });
        if keeps {
            for kind in KINDS {
                core.outlet(&mut locked(&core.state), kind)?;
            }
        }
        let member = domain.enter(id, info, core.clone(), callbacks)?;
        Ok(Writer { member, core })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        locked(&self.core.state).lent.clear();
    }
}

impl Core {
    fn outlet<'a>(&self, state: &'a mut State, kind: Kind) -> Result<&'a Publisher<Service, [u8], Head>> {
        let place = &mut state.outlets[kind as usize];
        if place.is_none() {
            let messages = self.services.messages(&self.id, &self.info, kind)?;
            *place = Some(self.services.publisher(&messages, &self.info)?);
        }
        Ok(place.as_ref().expect("made above"))
    }

    // The kinds of service through which a message is sent.
    fn kinds(&self, state: &State) -> [bool; 2] {
        let keeps = self.info.qos.durability == PERFLAB_TRANSIENT_LOCAL;
        let mut kinds = [keeps; 2];
        for target in &state.targets {
            kinds[target.kind as usize] = true;
        }
        kinds
    }

    fn send(state: &mut State, room: Room, mut head: Head) -> Result<()> {
        let mut room = room;
        head.published_ns = monotonic_after(0);
        *room.user_header_mut() = head;
        // SAFETY: the owner of the loan has filled it.
        unsafe { room.assume_init() }.send().map_err(|why| failed("not sent", why))?;
        let _ = state;
        Ok(())
    }

    fn head(state: &mut State, related: Option<&perflab_sample_identity>) -> Head {
        let stamp_ns = std::mem::take(&mut state.stamp_ns);
        let sequence = state.next;
        state.next += 1;
        Head {
            sequence,
            source_ns: if stamp_ns != 0 { stamp_ns } else { wall_ns() },
            published_ns: 0,
            related_sequence: related.map_or(0, |related| related.sequence),
            related_writer: related.map_or([0; 16], |related| related.writer.bytes),
        }
    }

    fn room(state: &State, kind: Kind, size: usize) -> Result<Room> {
        let publisher = state.outlets[kind as usize].as_ref().expect("those with readers are there");
        publisher.loan_slice_uninit(size).map_err(|why| failed(&format!("no room for {size} bytes"), why))
    }

    fn notify(state: &State) {
        for target in &state.targets {
            let _ = target.notifier.notify(); // fails if it has been notified already, or is gone
        }
    }
}

impl perflab_plugin::Writer for Writer {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.member.identity() }
    }
    fn matched(&self) -> usize {
        self.core.readers.load(Ordering::SeqCst)
    }

    fn write(&self, parts: &[perflab_bytes], related: Option<&perflab_sample_identity>) -> Result<i64> {
        let mut state = locked(&self.core.state);
        let head = Core::head(&mut state, related);
        let size = parts.iter().map(|part| part.size).sum();
        let kinds = self.core.kinds(&state);
        for kind in KINDS.into_iter().filter(|kind| kinds[*kind as usize]) {
            let mut room = Core::room(&state, kind, size)?;
            let mut at = room.payload_mut().as_mut_ptr().cast::<u8>();
            for part in parts.iter().filter(|part| part.size > 0) {
                // SAFETY: middleware.h guarantees this many bytes; the room has the size of all parts.
                unsafe {
                    std::ptr::copy_nonoverlapping(part.data.cast::<u8>(), at, part.size);
                    at = at.add(part.size);
                }
            }
            Core::send(&mut state, room, head)?;
        }
        Core::notify(&state);
        self.core.services.counts.copied.fetch_add(1, Ordering::Relaxed);
        Ok(head.sequence)
    }

    fn stamp_next(&self, source_timestamp_ns: i64) {
        locked(&self.core.state).stamp_ns = source_timestamp_ns;
    }

    // In the service whose readers get it without a copy; without readers, in that of readers with the
    // writer's own QoS.
    fn loan(&self) -> Result<*mut u8> {
        if !self.core.lends {
            return Err(Error::unsupported(format!("{NAME}: this writer was not created with loans; right would be loans")));
        }
        let mut state = locked(&self.core.state);
        let kinds = self.core.kinds(&state);
        let kind = match kinds {
            [false, true] => Kind::KeepsAll,
            [false, false] => Kind::of_reader(&self.core.info.qos),
            _ => Kind::KeepsLast,
        };
        self.core.outlet(&mut state, kind)?;
        let mut room = Core::room(&state, kind, self.core.info.fixed_size as usize)?;
        let address = room.payload_mut().as_mut_ptr().cast::<u8>();
        state.lent.insert(address as usize, (kind, room));
        Ok(address)
    }

    fn write_loaned(&self, message: *mut u8) -> Result<()> {
        let mut state = locked(&self.core.state);
        let head = Core::head(&mut state, None);
        let (kind, room) = state
            .lent
            .remove(&(message as usize))
            .ok_or_else(|| Error::failed(format!("{NAME}: not a loan of this writer")))?;
        let other = if kind == Kind::KeepsAll { Kind::KeepsLast } else { Kind::KeepsAll };
        let counts = &self.core.services.counts;
        let kinds = self.core.kinds(&state);
        if kinds[other as usize] {
            let mut copy = Core::room(&state, other, room.payload().len())?;
            copy.payload_mut().copy_from_slice(room.payload());
            Core::send(&mut state, copy, head)?;
            counts.copied_loans.fetch_add(1, Ordering::Relaxed);
        }
        Core::send(&mut state, room, head)?;
        Core::notify(&state);
        counts.loaned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn discard_loan(&self, message: *mut u8) {
        locked(&self.core.state).lent.remove(&(message as usize));
    }
}

impl Party for Core {
    // The subscriber exists already: it gets all messages from the next one on.
    fn add(&self, reader: &Identity, requested: &Endpoint, _asked: &[u8]) -> Result<Vec<u8>> {
        let kind = Kind::of_reader(&requested.qos);
        let mut state = locked(&self.state);
        let notifier = self.services.notifier(reader)?;
        let publisher = self.outlet(&mut state, kind)?;
        publisher.update_connections().map_err(|why| failed("cannot reach a reader", why))?;
        if !state.targets.iter().any(|target| target.reader == *reader) {
            state.targets.push(Target { reader: *reader, kind, notifier });
            self.readers.store(state.targets.len(), Ordering::SeqCst);
        }
        Ok(state.next.to_le_bytes().to_vec())
    }

    fn peer_gone(&self, peer: &Identity, _was_matched: bool) {
        let mut state = locked(&self.state);
        state.targets.retain(|target| target.reader != *peer);
        self.readers.store(state.targets.len(), Ordering::SeqCst);
    }
}
