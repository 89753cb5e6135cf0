//! The structs are generated from middleware.h; a C compiler must agree on the position of each member.

use std::io::Write;
use std::process::{Command, Stdio};

use perflab_plugin::interface::LAYOUT;

#[test]
fn a_c_compiler_agrees_where_every_member_lies() {
    let mut program = String::from("#include \"middleware/middleware.h\"\n");
    for (name, member, offset, size) in LAYOUT {
        program += &format!("_Static_assert(offsetof({name}, {member}) == {offset}, \"{name}.{member}\");\n");
        program += &format!("_Static_assert(sizeof({name}) == {size}, \"{name}\");\n");
    }
    assert!(LAYOUT.iter().any(|(name, ..)| *name == "perflab_middleware"));
    let mut compiler = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-x", "c", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../native"))
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    assert!(compiler.wait().unwrap().success());
}
