//! What the host lends: its clock, and the functions that it wants to be called.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::interface::*;

/// The host's clock and its interest in discovery; a cheap copy.
#[derive(Clone)]
pub struct Host {
    given: perflab_host,
    discovery: Callbacks,
}
// SAFETY: middleware.h: its functions may be called from any thread.
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
    /// Who is told of participants and endpoints elsewhere.
    pub fn discovery(&self) -> &Callbacks {
        &self.discovery
    }
}

/// The wall clock, for source time stamps.
pub fn wall_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(PERFLAB_TIME_UNKNOWN, |elapsed| elapsed.as_nanos() as i64)
}

/// What happened, before it has its time.
pub struct Event {
    pub kind: perflab_event_kind,
    pub peer: perflab_identity,
    pub topic: CString,
    pub type_name: CString,
    pub policy: Option<&'static CStr>,
    pub count: i32,
}

/// The callbacks of one writer or reader: never two of them at a time, and none once it was closed. One that is called may
/// close it.
#[derive(Clone)]
pub struct Callbacks(Arc<Inner>);

struct Inner {
    listener: perflab_listener,
    gate: Gate,
    is_closed: AtomicBool,
}
// SAFETY: middleware.h: they may come on threads of the plug-in.
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
    /// Whether anybody wants to know of data.
    pub fn wants_data(&self) -> bool {
        self.0.listener.on_data.is_some()
    }
    pub fn data(&self) {
        let Some(on_data) = self.0.listener.on_data else { return };
        let _guard = self.0.gate.pass();
        if !self.0.is_closed.load(Ordering::Relaxed) {
            // SAFETY: the context lives until the entity was destroyed, which closes this first.
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
    /// Afterwards none runs, and none will.
    pub fn close(&self) {
        let _guard = self.0.gate.pass();
        self.0.is_closed.store(true, Ordering::Relaxed);
    }
}

// A mutex that its owner may pass again.
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
