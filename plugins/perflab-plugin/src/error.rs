//! Errors, and how they cross the C interface: as a status and one line of text. This includes panics.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use crate::interface::*;

/// One line: what, where, and what would be right.
#[derive(Clone, Debug)]
pub struct Error {
    status: perflab_status,
    text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The middleware failed.
    pub fn failed(text: impl Into<String>) -> Error {
        Error { status: PERFLAB_FAILED, text: text.into() }
    }
    /// The installed middleware does not support the request.
    pub fn unsupported(text: impl Into<String>) -> Error {
        Error { status: PERFLAB_UNSUPPORTED, text: text.into() }
    }
    /// An option or value is malformed or unknown.
    pub fn bad_option(text: impl Into<String>) -> Error {
        Error { status: PERFLAB_BAD_OPTION, text: text.into() }
    }
    pub fn text(&self) -> &str {
        &self.text
    }

    fn put(&self, into: *mut perflab_error) -> perflab_status {
        // SAFETY: by middleware.h null or writable.
        if let Some(error) = unsafe { into.as_mut() } {
            let room = error.text.len() - 1;
            let bytes = self.text.bytes().take(room).map(|b| if b == b'\n' || b == 0 { b' ' } else { b });
            let mut size = 0;
            for (to, byte) in error.text.iter_mut().zip(bytes) {
                *to = byte as core::ffi::c_char;
                size += 1;
            }
            error.text[size] = 0;
        }
        self.status
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}
// A panic occurred where no status could report it. The next function with a status reports it.
static SOMEWHERE: AtomicBool = AtomicBool::new(false);
static UNTOLD: Mutex<Option<String>> = Mutex::new(None);

fn keep_untold(text: String) {
    *UNTOLD.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(text);
    SOMEWHERE.store(true, Ordering::Release);
}

/// From here on a panic prints nothing: it is reported by the function it ended or, on a thread of the
/// plug-in, by the next one. Only affects this library, which has its own copy of the standard library.
pub(crate) fn tell_panics(plugin: &'static str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(move |panic| {
            let payload: &dyn Any = panic.payload();
            let said = payload
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "something".to_owned());
            let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
            let text = format!("{plugin}: the plug-in panicked{place}: {said}");
            if INSIDE.get() {
                PANIC.with_borrow_mut(|told| *told = Some(text));
            } else {
                keep_untold(text);
            }
        }));
    });
}

fn caught<T>(function: impl FnOnce() -> T) -> Result<T> {
    let outer = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(function));
    INSIDE.set(outer);
    result.map_err(|_| {
        Error::failed(PANIC.with_borrow_mut(Option::take).unwrap_or_else(|| "the plug-in panicked".to_owned()))
    })
}

/// Wraps every function with a status.
#[inline]
pub(crate) fn guarded(error: *mut perflab_error, function: impl FnOnce() -> Result<perflab_status>) -> perflab_status {
    if SOMEWHERE.load(Ordering::Acquire) {
        SOMEWHERE.store(false, Ordering::Release);
        let untold = UNTOLD.lock().unwrap_or_else(|broken| broken.into_inner()).take();
        if let Some(text) = untold {
            return Error::failed(text).put(error);
        }
    }
    match caught(function) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) | Err(failure) => failure.put(error),
    }
}

/// Wraps every other function.
pub(crate) fn unguarded<T>(otherwise: T, function: impl FnOnce() -> T) -> T {
    caught(function).unwrap_or_else(|failure| {
        keep_untold(failure.text);
        otherwise
    })
}
