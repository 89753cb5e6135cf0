//! Discovery by zenoh's liveliness tokens: one for each participant and endpoint, with all data in the key.
//! They vanish with their session. Letters are messages to the key of a participant.
//!
//! Over each link declarations come before messages, so a writer that reads a reader's letter knows its
//! subscription.

use std::collections::HashMap;
use std::sync::Mutex;

use perflab_plugin::{from_hex, locked, to_hex, Domain, Doorbell, Host, Identity, Medium, Result};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::qos::CongestionControl;
use zenoh::sample::SampleKind;
use zenoh::Wait;

use crate::session::Session;
use crate::{failed, NAME};

pub fn join(session: &Session, host: Host, ignore_local_endpoints: bool) -> Result<Domain> {
    let (zenoh, prefix) = (session.zenoh.clone(), session.prefix().to_owned());
    Domain::join(NAME, host, ignore_local_endpoints, |own, bell| Ok(Box::new(Meeting::new(zenoh, &prefix, own, bell)?)))
}

struct Meeting {
    zenoh: zenoh::Session,
    prefix: String,
    own: Identity,
    tokens: Mutex<HashMap<Identity, LivelinessToken>>,
    _seen: Subscriber<()>,
    _letters: Subscriber<()>,
}

impl Meeting {
    fn new(zenoh: zenoh::Session, prefix: &str, own: Identity, bell: Doorbell) -> Result<Meeting> {
        let letters = bell.clone();
        let letters = zenoh
            .declare_subscriber(format!("{prefix}/letters/{}", to_hex(&own)))
            .callback(move |sample| letters.letter(&sample.payload().to_bytes()))
            .wait()
            .map_err(|why| failed("no letters", why))?;
        let seen = zenoh
            .liveliness()
            .declare_subscriber(format!("{prefix}/there/**"))
            .history(true)
            .callback(move |sample| {
                tell(&bell, sample.key_expr().as_str(), sample.kind() == SampleKind::Put);
            })
            .wait()
            .map_err(|why| failed("no liveliness", why))?;
        let meeting = Meeting {
            zenoh,
            prefix: format!("{prefix}/there/{}", to_hex(&own)),
            own,
            tokens: Mutex::default(),
            _seen: seen,
            _letters: letters,
        };
        meeting.declare(own, meeting.prefix.clone())?;
        Ok(meeting)
    }

    fn declare(&self, identity: Identity, key: String) -> Result<()> {
        let token = self.zenoh.liveliness().declare_token(key).wait().map_err(|why| failed("no token", why))?;
        locked(&self.tokens).insert(identity, token);
        Ok(())
    }
}

// PREFIX/there/PARTICIPANT[/ENDPOINT/WHAT]
fn tell(bell: &Doorbell, key: &str, is_there: bool) {
    let Some((_, told)) = key.split_once("/there/") else { return };
    let words: Vec<Option<Vec<u8>>> = told.split('/').map(from_hex).collect();
    let identity = |at: usize| -> Option<Identity> { words.get(at)?.as_deref()?.try_into().ok() };
    match (words.len(), is_there) {
        (1, true) => identity(0).into_iter().for_each(|who| bell.participant_found(who)),
        (1, false) => identity(0).into_iter().for_each(|who| bell.participant_lost(who)),
        (3, true) => {
            if let (Some(who), Some(what)) = (identity(1), &words[2]) {
                bell.endpoint_found(who, what);
            }
        }
        (3, false) => identity(1).into_iter().for_each(|who| bell.endpoint_gone(who)),
        _ => {}
    }
}

impl Medium for Meeting {
    fn announce(&self, endpoint: &Identity, encoded: &[u8]) -> Result<()> {
        self.declare(*endpoint, format!("{}/{}/{}", self.prefix, to_hex(endpoint), to_hex(encoded)))
    }
    fn withdraw(&self, endpoint: &Identity) {
        let token = locked(&self.tokens).remove(endpoint);
        if let Some(token) = token {
            let _ = token.undeclare().wait();
        }
    }
    fn send(&self, participant: &Identity, letter: &[u8]) -> Result<()> {
        let root = self.prefix.split("/there/").next().unwrap_or_default();
        debug_assert!(*participant != self.own);
        self.zenoh
            .put(format!("{root}/letters/{}", to_hex(participant)), letter)
            .congestion_control(CongestionControl::Block)
            .wait()
            .map_err(|why| failed("a letter was not sent", why))
    }
}
