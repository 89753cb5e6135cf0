//! The host's services: its clock, and the callbacks it wants.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::interface::*;

/// The host's clock and its discovery callback; cheap to copy.
#[derive(Clone)]
pub struct Host {
    given: perflab_host,
    discovery: Callbacks,
}
// SAFETY: by middleware.h its functions may be called from any thread.
unsafe impl Send for Host {}
unsafe impl Sync for Host {}

impl Host {
    pub(crate) fn new(given: perflab_host) -> Host {
        let listener = perflab_listener { on_data: None, on_event: given.on_event, context: given.context };
        Host { given, discovery: Callbacks::new(Some(listener)) }
    }
    /// Monotonic.
    pub fn now_ns(&self) -> i64 {
        match self.given.now_ns {
            // SAFETY: as above.
            Some(now) => unsafe { now(self.given.context) },
            None => PERFLAB_TIME_UNKNOWN,
        }
    }
    /// The callback for participants and endpoints elsewhere.
    pub fn discovery(&self) -> &Callbacks {
        &self.discovery
    }
}

/// The wall clock, for source time stamps.
pub fn wall_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(PERFLAB_TIME_UNKNOWN, |elapsed| elapsed.as_nanos() as i64)
}

/// An event without its time.
pub struct Event {
    pub kind: perflab_event_kind,
    pub peer: perflab_identity,
    pub topic: CString,
    pub type_name: CString,
    pub policy: Option<&'static CStr>,
    pub count: i32,
}

/// The callbacks of one writer or reader: they never overlap, and none runs after close(). A callback may
/// call close().
#[derive(Clone)]
pub struct Callbacks(Arc<Inner>);

struct Inner {
    listener: perflab_listener,
    gate: Gate,
    is_closed: AtomicBool,
}
// SAFETY: by middleware.h they may run on threads of the plug-in.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

impl Callbacks {
    pub(crate) fn new(listener: Option<perflab_listener>) -> Callbacks {
        let none = perflab_listener { on_data: None, on_event: None, context: std::ptr::null_mut() };
        Callbacks(Arc::new(Inner {
            listener: listener.unwrap_or(none),
            gate: Gate::default(),
            is_closed: AtomicBool::new(false),
        }))
    }
    /// True if there is an on_data callback.
    pub fn wants_data(&self) -> bool {
        self.0.listener.on_data.is_some()
    }
    pub fn data(&self) {
        let Some(on_data) = self.0.listener.on_data else { return };
        let _guard = self.0.gate.pass();
        if !self.0.is_closed.load(Ordering::Relaxed) {
            // SAFETY: the context lives until the entity is destroyed, which closes this first.
            unsafe { on_data(self.0.listener.context) }
        }
    }
    pub fn event(&self, host: &Host, event: &Event) {
        let Some(on_event) = self.0.listener.on_event else { return };
        let name = |text: &CString| if text.is_empty() { std::ptr::null() } else { text.as_ptr() };
        let said = perflab_event {
            kind: event.kind,
            at_ns: host.now_ns(),
            peer: event.peer,
            topic: name(&event.topic),
            r#type: name(&event.type_name),
            policy: event.policy.map_or(std::ptr::null(), CStr::as_ptr),
            count: event.count,
        };
        let _guard = self.0.gate.pass();
        if !self.0.is_closed.load(Ordering::Relaxed) {
            // SAFETY: as above.
            unsafe { on_event(self.0.listener.context, &said) }
        }
    }
    /// Afterwards no callback runs.
    pub fn close(&self) {
        let _guard = self.0.gate.pass();
        self.0.is_closed.store(true, Ordering::Relaxed);
    }
}

// A mutex that its owner may lock again.
#[derive(Default)]
struct Gate {
    mutex: Mutex<()>,
    owner: AtomicU64,
}

struct Passing<'a> {
    gate: &'a Gate,
    _lock: Option<MutexGuard<'a, ()>>,
}

fn this_thread() -> u64 {
    thread_local!(static OWN: u8 = const { 0 });
    OWN.with(|own| std::ptr::from_ref(own) as u64)
}

impl Gate {
    fn pass(&self) -> Passing<'_> {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            return Passing { gate: self, _lock: None };
        }
        let lock = self.mutex.lock().unwrap_or_else(|broken| broken.into_inner());
        self.owner.store(this_thread(), Ordering::Relaxed);
        Passing { gate: self, _lock: Some(lock) }
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        if self._lock.is_some() {
            self.gate.owner.store(0, Ordering::Relaxed);
        }
    }
}
