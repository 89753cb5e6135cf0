//! Waiting for messages in memory: a bell, a queue that rings it, and a wait-set over queues.
//!
//! A plug-in whose library calls it for each message puts the message into an [`Inbox`], from which `take()`
//! gets it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Error, Result, WaitSet};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Lets one thread sleep until another signals that there is work. Ringing costs one load while nobody
/// sleeps.
///
/// No ring is missed: the ringing thread stores first and then reads whether a thread sleeps; the sleeping
/// thread marks itself first and then checks the condition. So the condition must be read and written with
/// `SeqCst`.
#[derive(Default)]
pub struct Bell {
    asleep: AtomicU32, // the futex
}

impl Bell {
    /// True as soon as `ready` is, false if it is not until `until_ns` (CLOCK_MONOTONIC; `i64::MAX`: no
    /// limit).
    pub fn wait_until(&self, until_ns: i64, mut ready: impl FnMut() -> bool) -> bool {
        let mut in_time = true;
        loop {
            self.asleep.store(ASLEEP, Ordering::SeqCst);
            let found = ready();
            if found || !in_time {
                self.asleep.store(AWAKE, Ordering::Relaxed);
                return found;
            }
            in_time = self.sleep(until_ns);
        }
    }

    pub fn ring(&self) {
        if self.asleep.load(Ordering::SeqCst) == ASLEEP && self.asleep.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
            // SAFETY: the word lives as long as self.
            unsafe {
                libc::syscall(libc::SYS_futex, self.asleep.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            }
        }
    }

    // False on timeout.
    fn sleep(&self, until_ns: i64) -> bool {
        let until = libc::timespec { tv_sec: until_ns / 1_000_000_000, tv_nsec: until_ns % 1_000_000_000 };
        let limit = if until_ns == i64::MAX { std::ptr::null() } else { &raw const until };
        // FUTEX_WAIT_BITSET takes an absolute time. SAFETY: as above.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.asleep.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                ASLEEP,
                limit,
                std::ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
        result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
    }
}

/// CLOCK_MONOTONIC, `timeout_ns` from now.
pub fn monotonic_after(timeout_ns: i64) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).saturating_add(timeout_ns)
}

/// Something that a [`Bells`] waits for.
pub trait Waited: Send + Sync {
    fn has_data(&self) -> bool;
    /// The wait-set to ring from now on.
    fn attached(&self) -> MutexGuard<'_, Option<Arc<Places>>>;
}

/// A reader's messages.
pub struct Inbox<T> {
    plugin: &'static str,
    depth: usize, // history depth
    queue: Mutex<VecDeque<T>>,
    size: AtomicUsize,
    places: Mutex<Option<Arc<Places>>>,
}

impl<T: Send + 'static> Inbox<T> {
    pub fn new(plugin: &'static str, depth: usize) -> Arc<Inbox<T>> {
        Arc::new(Inbox { plugin, depth, queue: Mutex::default(), size: AtomicUsize::new(0), places: Mutex::default() })
    }
    /// Drops the oldest message if the history is full.
    pub fn push(&self, message: T) {
        let dropped = {
            let mut queue = locked(&self.queue);
            queue.push_back(message);
            let dropped = if queue.len() > self.depth { queue.pop_front() } else { None };
            self.size.store(queue.len(), Ordering::SeqCst);
            dropped
        };
        drop(dropped);
        if let Some(places) = locked(&self.places).as_ref() {
            places.bell.ring();
        }
    }
    pub fn pop(&self) -> Option<T> {
        if self.size.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut queue = locked(&self.queue);
        let oldest = queue.pop_front();
        self.size.store(queue.len(), Ordering::SeqCst);
        oldest
    }
    /// Ends the reader's attachment; called when the reader is dropped.
    pub fn close(&self) {
        let places = locked(&self.places).take();
        if let Some(places) = places {
            let own = std::ptr::from_ref(self).cast::<()>();
            locked(&places.readers).list.retain(|place| Arc::as_ptr(&place.reader).cast::<()>() != own);
        }
    }
}

impl<T: Send + 'static> Waited for Inbox<T> {
    fn has_data(&self) -> bool {
        self.size.load(Ordering::SeqCst) > 0
    }
    fn attached(&self) -> MutexGuard<'_, Option<Arc<Places>>> {
        locked(&self.places)
    }
}

/// The readers of a wait-set in order of attachment. Only changed while no thread waits.
#[derive(Default)]
pub struct Places {
    bell: Bell,
    woken: AtomicBool,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    list: Vec<Place>,
    first: usize, // where collecting starts
}

struct Place {
    reader: Arc<dyn Waited>,
    cookie: u64,
}

/// A wait-set over readers with an [`Inbox`].
pub struct Bells<Reader> {
    places: Arc<Places>,
    of: fn(&Reader) -> (&'static str, Arc<dyn Waited>),
}

/// A reader with an inbox.
pub trait HasInbox {
    type Message: Send + 'static;
    fn inbox(&self) -> &Arc<Inbox<Self::Message>>;
}

impl<Reader: HasInbox> Default for Bells<Reader> {
    fn default() -> Self {
        Bells { places: Arc::default(), of: |reader| (reader.inbox().plugin, reader.inbox().clone()) }
    }
}

impl<Reader: 'static> WaitSet<Reader> for Bells<Reader> {
    fn attach(&self, reader: &Reader, cookie: u64) -> Result<()> {
        let (plugin, reader) = (self.of)(reader);
        {
            let mut attached = reader.attached();
            if attached.is_some() {
                return Err(Error::failed(format!("{plugin}: the reader is attached to a wait-set already")));
            }
            *attached = Some(self.places.clone());
        }
        locked(&self.places.readers).list.push(Place { reader, cookie });
        Ok(())
    }

    fn wait(&self, timeout_ns: i64, ready: &mut [u64]) -> Result<Option<usize>> {
        let mut readers = locked(&self.places.readers);
        let mut count = 0;
        let mut look = || {
            let woken = self.places.woken.load(Ordering::SeqCst) && self.places.woken.swap(false, Ordering::SeqCst);
            count = readers.collect(ready);
            woken || count > 0
        };
        // Do not sleep until now: the kernel would still sleep for the thread's timer slack.
        let found = look() || timeout_ns > 0 && self.places.bell.wait_until(monotonic_after(timeout_ns), look);
        Ok(found.then_some(count))
    }

    fn wake(&self) {
        self.places.woken.store(true, Ordering::SeqCst);
        self.places.bell.ring();
    }
}

impl Readers {
    fn collect(&mut self, ready: &mut [u64]) -> usize {
        collect(self.list.len(), &mut self.first, ready, |at| {
            let place = &self.list[at];
            place.reader.has_data().then_some(place.cookie)
        })
    }
}

/// Stores the cookies of ready readers in `ready`, circularly from `first`; if not all fit, the next call
/// starts with the first that did not fit.
pub fn collect(count: usize, first: &mut usize, ready: &mut [u64], cookie: impl Fn(usize) -> Option<u64>) -> usize {
    let mut found = 0;
    for i in 0..count {
        let at = (*first + i) % count;
        let Some(cookie) = cookie(at) else { continue };
        if found == ready.len() {
            *first = at;
            return found;
        }
        ready[found] = cookie;
        found += 1;
    }
    *first = 0;
    found
}

impl<Reader> Drop for Bells<Reader> {
    fn drop(&mut self) {
        for place in locked(&self.places.readers).list.drain(..) {
            *place.reader.attached() = None;
        }
    }
}

/// Locks a mutex even if its owner panicked: the data are still valid.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|broken| broken.into_inner())
}
