//! A plug-in in Rust: four traits, and the table of C functions generated from them.

use std::ffi::{c_char, c_void, CStr, CString};
use std::sync::Mutex;

use crate::error::{guarded, tell_panics, unguarded};
use crate::interface::*;
use crate::{Callbacks, Error, Host, Result};

/// The middleware itself. It checks the arguments of `open` before anything starts.
pub trait Middleware: Sized + 'static {
    /// The name that users type.
    const NAME: &'static CStr;
    /// One line for `perflab list middlewares`.
    const SUMMARY: &'static CStr;
    /// The library's version.
    const VERSION: &'static CStr;
    /// Declare what is true; the conformance suite checks it.
    const CAPABILITIES: perflab_capabilities;
    /// The supported QoS policies; the host refuses all others. The last one is [`LAST_POLICY`].
    const POLICIES: &'static [perflab_policy];
    type Participant: Participant;

    fn open(host: Host, settings: &Settings) -> Result<Self::Participant>;
}

pub trait Participant: Sized + 'static {
    type Writer: Writer;
    type Reader: Reader;
    type WaitSet: WaitSet<Self::Reader>;

    /// A JSON object with the effective configuration.
    fn describe(&self) -> String;
    /// Called if `CAPABILITIES.reports_endpoints`.
    fn remote_endpoints(&self, _each: &mut dyn FnMut(&perflab_remote_endpoint)) {}
    fn create_writer(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Self::Writer>;
    fn create_reader(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Self::Reader>;
    fn create_waitset(&self) -> Result<Self::WaitSet>;
}

/// `Drop` must ensure that no callback of the writer or reader runs afterwards ([`Callbacks::close`]).
pub trait Writer: Sized + 'static {
    fn identity(&self) -> perflab_identity;
    fn matched(&self) -> usize;
    /// Returns the sequence number of the message. `related` is none unless `CAPABILITIES.related_samples`.
    fn write(&self, parts: &[perflab_bytes], related: Option<&perflab_sample_identity>) -> Result<i64>;
    /// Called if `CAPABILITIES.source_timestamps`.
    fn stamp_next(&self, _source_timestamp_ns: i64) {}
    /// Called if `CAPABILITIES.loans`, like the two that end a loan.
    fn loan(&self) -> Result<*mut u8> {
        Err(Error::unsupported("this middleware does not support loans"))
    }
    fn write_loaned(&self, _message: *mut u8) -> Result<()> {
        Err(Error::unsupported("this middleware does not support loans"))
    }
    fn discard_loan(&self, _message: *mut u8) {}
}

pub trait Reader: Sized + 'static {
    fn identity(&self) -> perflab_identity;
    fn matched(&self) -> usize;
    fn lifespan(&self, _writer: &perflab_identity) -> i64 {
        PERFLAB_DURATION_INFINITE
    }
    fn take(&self) -> Result<Option<perflab_sample>>;
    fn return_sample(&self, sample: &perflab_sample);
}

pub trait WaitSet<Reader>: Sized + 'static {
    fn attach(&self, reader: &Reader, cookie: u64) -> Result<()>;
    /// The number of cookies in `ready`; none on timeout.
    fn wait(&self, timeout_ns: i64, ready: &mut [u64]) -> Result<Option<usize>>;
    fn wake(&self);
}

/// Settings for opening a participant.
pub struct Settings<'a> {
    pub domain: u32,
    pub network: &'a str,
    pub participants_expected: u32,
    pub ignore_local_endpoints: bool,
    pub options: Vec<(&'a str, &'a str)>,
}

/// Settings of a writer or reader: names are not empty, and the QoS is valid in DDS.
pub struct EndpointSettings<'a> {
    pub topic: &'a str,
    pub type_name: &'a str,
    pub fixed_size: usize,
    pub loans: bool,
    pub related_samples: bool,
    pub qos: perflab_qos,
    /// The endpoint's own, followed by that of its QoS.
    pub user_data: Vec<u8>,
    pub key: *const perflab_key,
}

/// The conformance suite tests its effect.
pub const fn supported(name: &'static CStr) -> perflab_policy {
    perflab_policy { name: name.as_ptr(), support: PERFLAB_SUPPORTED, note: std::ptr::null() }
}
/// Passed to the library, which may act on it.
pub const fn hint(name: &'static CStr) -> perflab_policy {
    perflab_policy { name: name.as_ptr(), support: PERFLAB_HINT, note: std::ptr::null() }
}
pub const fn refused(name: &'static CStr, why: &'static CStr) -> perflab_policy {
    perflab_policy { name: name.as_ptr(), support: PERFLAB_REFUSED, note: why.as_ptr() }
}
pub const LAST_POLICY: perflab_policy =
    perflab_policy { name: std::ptr::null(), support: PERFLAB_REFUSED, note: std::ptr::null() };

/// Exports the one symbol of a plug-in: the function table of `$middleware`, which is a [`Middleware`].
#[macro_export]
macro_rules! export_middleware {
    ($middleware:ty) => {
        #[no_mangle]
        pub extern "C" fn perflab_middleware_plugin() -> *const $crate::interface::perflab_middleware {
            const TABLE: $crate::Table = $crate::Table::of::<$middleware>();
            static STORED: $crate::Table = TABLE;
            STORED.address()
        }
    };
}

/// The function table in static storage.
pub struct Table(perflab_middleware);
// SAFETY: it never changes, and everything it refers to is static.
unsafe impl Sync for Table {}

impl Table {
    pub fn address(&'static self) -> *const perflab_middleware {
        &self.0
    }

    pub const fn of<M: Middleware>() -> Table {
        assert!(M::POLICIES[M::POLICIES.len() - 1].name.is_null(), "POLICIES must end with LAST_POLICY");
        let with = M::CAPABILITIES;
        Table(perflab_middleware {
            abi: PERFLAB_MIDDLEWARE_ABI,
            name: M::NAME.as_ptr(),
            summary: M::SUMMARY.as_ptr(),
            version: Some(version::<M>),
            capabilities: Some(capabilities::<M>),
            policies: Some(policies::<M>),
            open: Some(open::<M>),
            close: Some(close::<M::Participant>),
            describe: Some(describe::<M::Participant>),
            remote_endpoints: if with.reports_endpoints { Some(remote_endpoints::<M::Participant>) } else { None },
            create_writer: Some(create_writer::<M>),
            destroy_writer: Some(destroy::<perflab_writer, WriterOf<M>>),
            create_reader: Some(create_reader::<M>),
            destroy_reader: Some(destroy::<perflab_reader, ReaderOf<M>>),
            writer_identity: Some(writer_identity::<WriterOf<M>>),
            reader_identity: Some(reader_identity::<ReaderOf<M>>),
            matched_readers: Some(matched_readers::<WriterOf<M>>),
            matched_writers: Some(matched_writers::<ReaderOf<M>>),
            lifespan: Some(lifespan::<ReaderOf<M>>),
            write: Some(write::<WriterOf<M>>),
            write_related: if with.related_samples { Some(write_related::<WriterOf<M>>) } else { None },
            loan: if with.loans { Some(loan::<WriterOf<M>>) } else { None },
            write_loaned: if with.loans { Some(write_loaned::<WriterOf<M>>) } else { None },
            discard_loan: if with.loans { Some(discard_loan::<WriterOf<M>>) } else { None },
            stamp_next: if with.source_timestamps { Some(stamp_next::<WriterOf<M>>) } else { None },
            take: Some(take::<ReaderOf<M>>),
            return_sample: Some(return_sample::<ReaderOf<M>>),
            create_waitset: Some(create_waitset::<M::Participant>),
            destroy_waitset: Some(destroy::<perflab_waitset, WaitSetOf<M>>),
            attach: Some(attach::<M>),
            wait: Some(wait::<M>),
            wake: Some(wake::<M>),
        })
    }
}

// ---- the C side: arguments are as middleware.h guarantees, and no panic escapes ----

type WriterOf<M> = <<M as Middleware>::Participant as Participant>::Writer;
type ReaderOf<M> = <<M as Middleware>::Participant as Participant>::Reader;
type WaitSetOf<M> = <<M as Middleware>::Participant as Participant>::WaitSet;

// The object behind the host's perflab_participant.
struct Opened<P> {
    participant: P,
    described: Mutex<CString>,
}

unsafe extern "C" fn version<M: Middleware>() -> *const c_char {
    M::VERSION.as_ptr()
}
unsafe extern "C" fn capabilities<M: Middleware>() -> perflab_capabilities {
    M::CAPABILITIES
}
unsafe extern "C" fn policies<M: Middleware>() -> *const perflab_policy {
    M::POLICIES.as_ptr()
}

unsafe fn text<'a>(given: *const c_char, what: &str) -> Result<&'a str> {
    if given.is_null() {
        return Ok("");
    }
    CStr::from_ptr(given).to_str().map_err(|_| Error::bad_option(format!("{what} is not UTF-8")))
}

unsafe extern "C" fn open<M: Middleware>(
    host: *const perflab_host,
    settings: *const perflab_participant_settings,
    participant: *mut *mut perflab_participant,
    error: *mut perflab_error,
) -> perflab_status {
    let name = M::NAME.to_str().unwrap_or("a plug-in");
    tell_panics(name);
    guarded(error, || {
        let given = &*settings;
        if given.domain > 232 {
            return Err(Error::bad_option(format!("{name}: domain {}; right would be 0 to 232", given.domain)));
        }
        let mut options = Vec::new();
        for i in 0..given.option_count {
            let option = &*given.options.add(i);
            options.push((text(option.key, "an option")?, text(option.value, "the value of an option")?));
        }
        let network = text(given.network, "the network")?;
        let settings = Settings {
            domain: given.domain,
            network: if network.is_empty() { "lo" } else { network },
            participants_expected: given.participants_expected,
            ignore_local_endpoints: given.ignore_local_endpoints,
            options,
        };
        let opened = Opened { participant: M::open(Host::new(*host), &settings)?, described: Mutex::default() };
        *participant = Box::into_raw(Box::new(opened)).cast();
        Ok(PERFLAB_OK)
    })
}

unsafe extern "C" fn close<P: Participant>(participant: *mut perflab_participant) {
    unguarded((), || drop(Box::from_raw(participant.cast::<Opened<P>>())));
}

unsafe fn participant_of<'a, P: Participant>(participant: *mut perflab_participant) -> &'a Opened<P> {
    &*participant.cast::<Opened<P>>()
}

unsafe extern "C" fn describe<P: Participant>(participant: *mut perflab_participant) -> *const c_char {
    unguarded(c"{}".as_ptr(), || {
        let opened = participant_of::<P>(participant);
        let mut described = opened.described.lock().unwrap_or_else(|broken| broken.into_inner());
        *described = CString::new(opened.participant.describe()).unwrap_or_default();
        described.as_ptr()
    })
}

unsafe extern "C" fn remote_endpoints<P: Participant>(
    participant: *mut perflab_participant,
    each: Option<unsafe extern "C" fn(*mut c_void, *const perflab_remote_endpoint)>,
    context: *mut c_void,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        if let Some(each) = each {
            participant_of::<P>(participant).participant.remote_endpoints(&mut |one| each(context, one));
        }
        Ok(PERFLAB_OK)
    })
}

unsafe fn endpoint_settings<'a, M: Middleware>(given: &'a perflab_endpoint_settings) -> Result<EndpointSettings<'a>> {
    let name = M::NAME.to_string_lossy();
    let (topic, type_name) = (text(given.topic, "the topic")?, text(given.type_of(), "the type")?);
    if topic.is_empty() || type_name.is_empty() {
        return Err(Error::bad_option(format!("{name}: topic or type is empty; right would be e.g. rt/amazon")));
    }
    let qos = given.qos;
    for (policy, value) in
        [("deadline", qos.deadline_ns), ("lifespan", qos.lifespan_ns), ("lease duration", qos.lease_duration_ns)]
    {
        if value <= 0 {
            return Err(Error::bad_option(format!(
                "{name}: {policy} of {value} ns; right would be above 0, or infinite"
            )));
        }
    }
    if qos.history == PERFLAB_KEEP_LAST && qos.depth <= 0 {
        return Err(Error::bad_option(format!("{name}: history depth {}; right would be at least 1", qos.depth)));
    }
    let own = if given.user_data.is_null() { &[][..] } else { CStr::from_ptr(given.user_data).to_bytes() };
    let of_qos = CStr::from_ptr(qos.user_data.text.as_ptr()).to_bytes();
    Ok(EndpointSettings {
        topic,
        type_name,
        fixed_size: given.fixed_size,
        loans: given.loans,
        related_samples: given.related_samples,
        qos,
        user_data: [own, of_qos].concat(),
        key: given.key,
    })
}

impl perflab_endpoint_settings {
    fn type_of(&self) -> *const c_char {
        self.r#type
    }
}

unsafe fn callbacks_of(listener: *const perflab_listener) -> Callbacks {
    Callbacks::new(listener.as_ref().copied())
}

unsafe extern "C" fn create_writer<M: Middleware>(
    participant: *mut perflab_participant,
    settings: *const perflab_endpoint_settings,
    listener: *const perflab_listener,
    writer: *mut *mut perflab_writer,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let of = participant_of::<M::Participant>(participant);
        let made = of.participant.create_writer(&endpoint_settings::<M>(&*settings)?, callbacks_of(listener))?;
        *writer = Box::into_raw(Box::new(made)).cast();
        Ok(PERFLAB_OK)
    })
}

unsafe extern "C" fn create_reader<M: Middleware>(
    participant: *mut perflab_participant,
    settings: *const perflab_endpoint_settings,
    listener: *const perflab_listener,
    reader: *mut *mut perflab_reader,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let of = participant_of::<M::Participant>(participant);
        let made = of.participant.create_reader(&endpoint_settings::<M>(&*settings)?, callbacks_of(listener))?;
        *reader = Box::into_raw(Box::new(made)).cast();
        Ok(PERFLAB_OK)
    })
}

unsafe extern "C" fn destroy<Handle, Own>(handle: *mut Handle) {
    unguarded((), || drop(Box::from_raw(handle.cast::<Own>())));
}

unsafe extern "C" fn writer_identity<W: Writer>(writer: *const perflab_writer) -> perflab_identity {
    unguarded(perflab_identity { bytes: [0; 16] }, || (*writer.cast::<W>()).identity())
}
unsafe extern "C" fn reader_identity<R: Reader>(reader: *const perflab_reader) -> perflab_identity {
    unguarded(perflab_identity { bytes: [0; 16] }, || (*reader.cast::<R>()).identity())
}
unsafe extern "C" fn matched_readers<W: Writer>(writer: *mut perflab_writer) -> usize {
    unguarded(0, || (*writer.cast::<W>()).matched())
}
unsafe extern "C" fn matched_writers<R: Reader>(reader: *mut perflab_reader) -> usize {
    unguarded(0, || (*reader.cast::<R>()).matched())
}
unsafe extern "C" fn lifespan<R: Reader>(reader: *mut perflab_reader, writer: *const perflab_identity) -> i64 {
    unguarded(PERFLAB_DURATION_INFINITE, || (*reader.cast::<R>()).lifespan(&*writer))
}

unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(first, count)
    }
}

unsafe extern "C" fn write<W: Writer>(
    writer: *mut perflab_writer,
    parts: *const perflab_bytes,
    count: usize,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || (*writer.cast::<W>()).write(list(parts, count), None).map(|_| PERFLAB_OK))
}

unsafe extern "C" fn write_related<W: Writer>(
    writer: *mut perflab_writer,
    parts: *const perflab_bytes,
    count: usize,
    related: *const perflab_sample_identity,
    sequence: *mut i64,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let number = (*writer.cast::<W>()).write(list(parts, count), related.as_ref())?;
        if let Some(told) = sequence.as_mut() {
            *told = number;
        }
        Ok(PERFLAB_OK)
    })
}

unsafe extern "C" fn loan<W: Writer>(
    writer: *mut perflab_writer,
    message: *mut *mut c_void,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        *message = (*writer.cast::<W>()).loan()?.cast();
        Ok(PERFLAB_OK)
    })
}
unsafe extern "C" fn write_loaned<W: Writer>(
    writer: *mut perflab_writer,
    message: *mut c_void,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || (*writer.cast::<W>()).write_loaned(message.cast()).map(|()| PERFLAB_OK))
}
unsafe extern "C" fn discard_loan<W: Writer>(writer: *mut perflab_writer, message: *mut c_void) {
    unguarded((), || (*writer.cast::<W>()).discard_loan(message.cast()));
}
unsafe extern "C" fn stamp_next<W: Writer>(writer: *mut perflab_writer, source_timestamp_ns: i64) {
    unguarded((), || (*writer.cast::<W>()).stamp_next(source_timestamp_ns));
}

unsafe extern "C" fn take<R: Reader>(
    reader: *mut perflab_reader,
    sample: *mut perflab_sample,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let Some(taken) = (*reader.cast::<R>()).take()? else { return Ok(PERFLAB_NO_DATA) };
        *sample = taken;
        Ok(PERFLAB_OK)
    })
}
unsafe extern "C" fn return_sample<R: Reader>(reader: *mut perflab_reader, sample: *mut perflab_sample) {
    unguarded((), || (*reader.cast::<R>()).return_sample(&*sample));
}

unsafe extern "C" fn create_waitset<P: Participant>(
    participant: *mut perflab_participant,
    waitset: *mut *mut perflab_waitset,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        *waitset = Box::into_raw(Box::new(participant_of::<P>(participant).participant.create_waitset()?)).cast();
        Ok(PERFLAB_OK)
    })
}
unsafe extern "C" fn attach<M: Middleware>(
    waitset: *mut perflab_waitset,
    reader: *mut perflab_reader,
    cookie: u64,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let set = &*waitset.cast::<WaitSetOf<M>>();
        set.attach(&*reader.cast::<ReaderOf<M>>(), cookie).map(|()| PERFLAB_OK)
    })
}
unsafe extern "C" fn wait<M: Middleware>(
    waitset: *mut perflab_waitset,
    timeout_ns: i64,
    ready: *mut u64,
    capacity: usize,
    ready_count: *mut usize,
    error: *mut perflab_error,
) -> perflab_status {
    guarded(error, || {
        let room = if capacity == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(ready, capacity) };
        Ok(match (*waitset.cast::<WaitSetOf<M>>()).wait(timeout_ns, room)? {
            Some(count) => {
                *ready_count = count;
                PERFLAB_OK
            }
            None => PERFLAB_TIMEOUT,
        })
    })
}
unsafe extern "C" fn wake<M: Middleware>(waitset: *mut perflab_waitset) {
    unguarded((), || (*waitset.cast::<WaitSetOf<M>>()).wake());
}
