//! A plug-in that panics: each panic becomes one line of text, and the plug-in continues.

use std::ffi::{c_void, CStr};
use std::ptr::null_mut;

use perflab_plugin::interface::*;
use perflab_plugin::{
    Callbacks, EndpointSettings, Host, Middleware, Participant, Reader, Result, Settings, Table, WaitSet, Writer,
    LAST_POLICY,
};

struct Panics;
impl Middleware for Panics {
    const NAME: &'static CStr = c"panics";
    const SUMMARY: &'static CStr = c"panics";
    const VERSION: &'static CStr = c"1";
    const CAPABILITIES: perflab_capabilities = perflab_capabilities {
        across_processes: false,
        data_ready_callbacks: false,
        source_timestamps: false,
        reception_timestamps: false,
        reports_endpoints: false,
        related_samples: false,
        loans: false,
        instances: false,
    };
    const POLICIES: &'static [perflab_policy] = &[LAST_POLICY];
    type Participant = There;
    fn open(_host: Host, settings: &Settings) -> Result<There> {
        assert!(settings.domain != 5, "no room\nfor domain {}", settings.domain);
        Ok(There)
    }
}

struct There;
impl Participant for There {
    type Writer = There;
    type Reader = There;
    type WaitSet = There;
    fn describe(&self) -> String {
        panic!("nothing to say")
    }
    fn create_writer(&self, _settings: &EndpointSettings, _callbacks: Callbacks) -> Result<There> {
        Ok(There)
    }
    fn create_reader(&self, _settings: &EndpointSettings, _callbacks: Callbacks) -> Result<There> {
        panic!("no reader")
    }
    fn create_waitset(&self) -> Result<There> {
        Ok(There)
    }
}
impl Writer for There {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: [1; 16] }
    }
    fn matched(&self) -> usize {
        panic!("who knows")
    }
    fn write(&self, parts: &[perflab_bytes], _related: Option<&perflab_sample_identity>) -> Result<i64> {
        assert!(parts.is_empty(), "a message");
        Ok(1)
    }
}
impl Reader for There {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: [2; 16] }
    }
    fn matched(&self) -> usize {
        0
    }
    fn take(&self) -> Result<Option<perflab_sample>> {
        Ok(None)
    }
    fn return_sample(&self, _sample: &perflab_sample) {}
}
impl WaitSet<There> for There {
    fn attach(&self, _reader: &There, _cookie: u64) -> Result<()> {
        Ok(())
    }
    fn wait(&self, _timeout_ns: i64, _ready: &mut [u64]) -> Result<Option<usize>> {
        Ok(None)
    }
    fn wake(&self) {}
}

static TABLE: Table = Table::of::<Panics>();

unsafe extern "C" fn now_ns(_context: *mut c_void) -> i64 {
    0
}

fn text(error: &perflab_error) -> String {
    // SAFETY: it is zero-terminated.
    unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_str().unwrap().to_owned()
}

#[test]
fn a_panic_is_one_line_and_the_plug_in_goes_on() {
    // SAFETY: as a host calls it.
    unsafe {
        let table = &*TABLE.address();
        let host = perflab_host { now_ns: Some(now_ns), on_event: None, context: null_mut() };
        let mut settings = perflab_participant_settings {
            domain: 5,
            network: c"lo".as_ptr(),
            participants_expected: 1,
            ignore_local_endpoints: false,
            options: std::ptr::null(),
            option_count: 0,
        };
        let (mut participant, mut error) = (null_mut(), perflab_error { text: [0; 512] });
        let open = table.open.unwrap();
        assert_eq!(open(&host, &settings, &mut participant, &mut error), PERFLAB_FAILED);
        assert!(participant.is_null());
        let said = text(&error);
        assert!(
            said.starts_with("panics: the plug-in panicked at ") && said.ends_with("no room for domain 5"),
            "{said}"
        );

        settings.domain = 6;
        assert_eq!(open(&host, &settings, &mut participant, &mut error), PERFLAB_OK);
        let mut endpoint: perflab_endpoint_settings = std::mem::zeroed();
        (endpoint.topic, endpoint.r#type, endpoint.qos.depth) = (c"rt/a".as_ptr(), c"A".as_ptr(), 1);
        (endpoint.qos.deadline_ns, endpoint.qos.lifespan_ns) = (PERFLAB_DURATION_INFINITE, PERFLAB_DURATION_INFINITE);
        endpoint.qos.lease_duration_ns = PERFLAB_DURATION_INFINITE;
        let mut reader = null_mut();
        let made = table.create_reader.unwrap()(participant, &endpoint, std::ptr::null(), &mut reader, &mut error);
        assert_eq!((made, text(&error).ends_with("no reader")), (PERFLAB_FAILED, true));

        // A panic without a status to report it is reported by the next function with one, once.
        let mut writer = null_mut();
        let create = table.create_writer.unwrap();
        assert_eq!(create(participant, &endpoint, std::ptr::null(), &mut writer, &mut error), PERFLAB_OK);
        assert_eq!(table.matched_readers.unwrap()(writer), 0);
        let write = table.write.unwrap();
        assert_eq!(write(writer, std::ptr::null(), 0, &mut error), PERFLAB_FAILED);
        assert!(text(&error).ends_with("who knows"), "{}", text(&error));
        assert_eq!(write(writer, std::ptr::null(), 0, &mut error), PERFLAB_OK);
        let part = perflab_bytes { data: c"a".as_ptr().cast(), size: 1 };
        assert_eq!(write(writer, &part, 1, &mut error), PERFLAB_FAILED);
        assert!(text(&error).ends_with("a message") && !text(&error).contains('\n'), "{}", text(&error));
        assert_eq!(write(writer, std::ptr::null(), 0, &mut error), PERFLAB_OK);

        assert_eq!(CStr::from_ptr(table.describe.unwrap()(participant)), c"{}");
        assert_eq!(write(writer, std::ptr::null(), 0, &mut error), PERFLAB_FAILED);
        table.destroy_writer.unwrap()(writer);
        table.close.unwrap()(participant);
    }
}
