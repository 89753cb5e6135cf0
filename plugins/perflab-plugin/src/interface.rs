//! middleware.h as translated by build.rs. The header has the contracts.

#![allow(non_camel_case_types, missing_docs)]

include!(concat!(env!("OUT_DIR"), "/interface.rs"));

/// Two lists of names have a common name; the empty name counts.
fn one_in_common(a: &perflab_text, b: &perflab_text) -> bool {
    let names = |text: &perflab_text| -> Vec<Vec<u8>> {
        let bytes: Vec<u8> = text.text.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
        bytes.split(|c| *c == b',').map(<[u8]>::to_vec).collect()
    };
    let others = names(b);
    names(a).iter().any(|name| others.contains(name))
}
