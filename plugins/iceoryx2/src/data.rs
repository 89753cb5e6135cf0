//! Waiting for listeners, whose notifications the kernel holds: a wait-set, and the thread that calls `on_data`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use perflab_plugin::{collect, locked, monotonic_after, Error, Result};

use crate::reader::{Core, Reader};
use crate::{failed, NAME};

fn last_error(what: &str) -> Error {
    failed(what, std::io::Error::last_os_error())
}

/// An owned file descriptor.
struct Descriptor(i32);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned.
        unsafe { libc::close(self.0) };
    }
}

fn made(number: i32) -> Result<Descriptor> {
    if number < 0 {
        return Err(last_error("no file descriptor is left"));
    }
    Ok(Descriptor(number))
}

/// Signals work that no listener reports.
pub struct Bell(Descriptor);

impl Bell {
    fn new() -> Result<Bell> {
        // SAFETY: no pointers.
        Ok(Bell(made(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?))
    }
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: 8 bytes.
        unsafe { libc::write(self.0 .0, (&raw const one).cast(), 8) };
    }
    fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: 8 bytes.
        unsafe { libc::read(self.0 .0, (&raw mut count).cast(), 8) };
    }
}

struct Epoll(Descriptor);

impl Epoll {
    fn new() -> Result<Epoll> {
        // SAFETY: no pointers.
        Ok(Epoll(made(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?))
    }
    fn add(&self, descriptor: i32, token: u64) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: a valid event.
        match unsafe { libc::epoll_ctl(self.0 .0, libc::EPOLL_CTL_ADD, descriptor, &mut event) } {
            0 => Ok(()),
            _ => Err(last_error("cannot wait for a listener")),
        }
    }
    fn remove(&self, descriptor: i32) {
        // SAFETY: the kernel ignores the event here.
        unsafe { libc::epoll_ctl(self.0 .0, libc::EPOLL_CTL_DEL, descriptor, std::ptr::null_mut()) };
    }
    // Waits until CLOCK_MONOTONIC reaches `until`.
    fn wait<'a>(&self, events: &'a mut [libc::epoll_event; 32], until_ns: i64) -> Result<&'a [libc::epoll_event]> {
        loop {
            let left_ns = (until_ns - monotonic_after(0)).max(0);
            let left = libc::timespec { tv_sec: left_ns / 1_000_000_000, tv_nsec: left_ns % 1_000_000_000 };
            let limit = if until_ns == i64::MAX { std::ptr::null() } else { &raw const left };
            // A direct system call, because glibc has a wrapper only since 2.35. SAFETY: a list of 32 events.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.0 .0,
                    events.as_mut_ptr(),
                    32,
                    limit,
                    std::ptr::null::<libc::sigset_t>(),
                    0,
                )
            };
            if count >= 0 {
                return Ok(&events[..count as usize]);
            }
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return Err(last_error("cannot wait for listeners"));
            }
        }
    }
}

const NO_EVENTS: [libc::epoll_event; 32] = [libc::epoll_event { events: 0, u64: 0 }; 32];
const BELL: u64 = 0;

// ---- a wait-set ----

pub struct WaitSet {
    shared: Arc<Changed>,
}

/// A reader's reference to its wait-set.
pub struct Changed {
    bell: Bell,
    epoll: Epoll,
    woken: AtomicBool,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    list: Vec<(Arc<Core>, u64)>,
    first: usize,
}

impl Changed {
    pub fn ring(&self) {
        self.bell.ring();
    }
    pub fn forget(&self, reader: &Arc<Core>) {
        use crate::data::Watched;
        if !reader.is_called() {
            self.epoll.remove(reader.descriptor());
        }
        locked(&self.places).list.retain(|(other, _)| !Arc::ptr_eq(other, reader));
    }
}

impl WaitSet {
    pub fn new() -> Result<WaitSet> {
        let (bell, epoll) = (Bell::new()?, Epoll::new()?);
        epoll.add(bell.0 .0, BELL)?;
        let shared = Changed { bell, epoll, woken: AtomicBool::new(false), places: Mutex::default() };
        Ok(WaitSet { shared: Arc::new(shared) })
    }
}

impl perflab_plugin::WaitSet<Reader> for WaitSet {
    fn attach(&self, reader: &Reader, cookie: u64) -> Result<()> {
        reader.core.attach(&self.shared)?;
        if !reader.core.is_called() {
            let added = self.shared.epoll.add(reader.core.descriptor(), Arc::as_ptr(&reader.core) as u64);
            if added.is_err() {
                reader.core.detach();
                return added;
            }
        }
        locked(&self.shared.places).list.push((reader.core.clone(), cookie));
        Ok(())
    }

    fn wait(&self, timeout_ns: i64, ready: &mut [u64]) -> Result<Option<usize>> {
        let until_ns = monotonic_after(timeout_ns.max(0));
        let shared = &*self.shared;
        let mut places = locked(&shared.places);
        let mut events = NO_EVENTS;
        let mut is_over = timeout_ns <= 0;
        loop {
            let woken = shared.woken.swap(false, Ordering::SeqCst);
            let Places { list, first } = &mut *places;
            let count = collect(list.len(), first, ready, |at| list[at].0.has_data().then_some(list[at].1));
            if woken || count > 0 {
                return Ok(Some(count));
            }
            if is_over {
                return Ok(None);
            }
            let told = shared.epoll.wait(&mut events, until_ns)?;
            is_over = told.is_empty();
            for event in told {
                let token = event.u64;
                if token == BELL {
                    shared.bell.clear();
                } else if let Some((reader, _)) = places.list.iter().find(|(one, _)| Arc::as_ptr(one) as u64 == token) {
                    reader.drain();
                }
            }
        }
    }

    fn wake(&self) {
        self.shared.woken.store(true, Ordering::SeqCst);
        self.shared.bell.ring();
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for (reader, _) in locked(&self.shared.places).list.drain(..) {
            reader.detach();
        }
    }
}

// ---- the thread that calls on_data ----

pub trait Watched: Send + Sync {
    fn descriptor(&self) -> i32;
    fn notified(&self);
}

/// "iceoryx2.data": waits for the listeners of readers with `on_data`.
pub struct DataThread {
    shared: Arc<Watching>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Watching {
    bell: Bell,
    epoll: Epoll,
    stopping: AtomicBool,
    readers: Mutex<Vec<Arc<dyn Watched>>>,
}

fn token_of(reader: &dyn Watched) -> u64 {
    std::ptr::from_ref(reader).cast::<()>() as u64
}

impl DataThread {
    pub fn new() -> Result<DataThread> {
        let (bell, epoll) = (Bell::new()?, Epoll::new()?);
        epoll.add(bell.0 .0, BELL)?;
        let shared = Arc::new(Watching { bell, epoll, stopping: AtomicBool::new(false), readers: Mutex::default() });
        let on_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("{NAME}.data"))
            .spawn(move || on_thread.run())
            .map_err(|why| failed("cannot create a thread", why))?;
        Ok(DataThread { shared, thread: Mutex::new(Some(thread)) })
    }
    pub fn watch(&self, reader: Arc<dyn Watched>) -> Result<()> {
        let (descriptor, token) = (reader.descriptor(), token_of(&*reader));
        locked(&self.shared.readers).push(reader);
        self.shared.epoll.add(descriptor, token)
    }
    pub fn forget(&self, reader: &dyn Watched) {
        self.shared.epoll.remove(reader.descriptor());
        locked(&self.shared.readers).retain(|other| token_of(&**other) != token_of(reader));
    }
}

impl Watching {
    fn run(&self) {
        let mut events = NO_EVENTS;
        while !self.stopping.load(Ordering::Acquire) {
            let Ok(told) = self.epoll.wait(&mut events, i64::MAX) else { return };
            for event in told {
                let token = event.u64;
                if token == BELL {
                    self.bell.clear();
                    continue;
                }
                let reader = locked(&self.readers).iter().find(|reader| token_of(&***reader) == token).cloned();
                if let Some(reader) = reader {
                    reader.notified();
                }
            }
        }
    }
}

impl Drop for DataThread {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.bell.ring();
        if let Some(thread) = locked(&self.thread).take() {
            let _ = thread.join();
        }
    }
}
