//! A number that a new process gets from one that was limited means nothing: the new one is neither held nor shown.

use std::path::Path;
use std::process::{Command, Output};

use discnice_requirements::skip;
use serde_json::Value;

/// In a PID namespace, as only there the next number may be chosen (`/proc/sys/kernel/ns_last_pid`, proc(5)).
/// A shell job is attached; the holder and the job are killed; a program that writes gets the job's number, and a daemon
/// starts. Prints the number, what `status` says, and how many writes the program made within two seconds.
const SCRIPT: &str = r#"
cd "$SCENE"
dd if=/dev/zero of=data bs=1M count=8 2> /dev/null
sh -c 'while :; do dd if=data of=/dev/null bs=64k iflag=direct 2> /dev/null; done' & job=$!
sleep 0.1
"$DISCNICE" attach --disk 4K $job > /dev/null & holder=$!
sleep 1
kill -9 $holder $job $(cat /proc/[0-9]*/stat | sed -n "s/^\([0-9]*\) (dd) .*/\1/p")
wait $holder $job 2> /dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do
    echo $((job - 1)) > /proc/sys/kernel/ns_last_pid || exit 77
    sh -c 'while :; do echo x >> count; done' & next=$!
    [ $next = $job ] && break
    kill -9 $next
done
[ $next = $job ] || exit 77
"$DISCNICE" policyd --idle 5 & daemon=$!
sleep 1
: > count
sleep 2
echo "$job $(wc -l < count)"
"$DISCNICE" status --json
kill $daemon $next
"#;

/// A job that the library holds is killed, and a program that was started elsewhere gets its number. Prints what attaching and
/// detaching that one and removing the class end with.
const ATTACHED: &str = r#"
cd "$SCENE"
"$DISCNICE" run --class old --disk 4M --mechanism preload sh -c 'echo $$ > id; exec sleep 60' &
while ! [ -s id ]; do sleep 0.05; done
job=$(cat id)
sleep 0.2
kill -9 $job
wait
for try in 1 2 3 4 5 6 7 8 9 10; do
    echo $((job - 1)) > /proc/sys/kernel/ns_last_pid || exit 77
    sleep 60 & next=$!
    [ $next = $job ] && break
    kill -9 $next
done
[ $next = $job ] || exit 77
"$DISCNICE" attach --background --disk 1M $next > /dev/null
echo attach $?
"$DISCNICE" detach $next
echo detach $?
"$DISCNICE" class rm old
echo rm $?
kill $next
"#;

fn in_a_namespace(scene: &Path, script: &str) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-Urpf", "--mount-proc", "sh", "-c", script]);
    command.env("DISCNICE", env!("CARGO_BIN_EXE_discnice"));
    command.env("SCENE", scene).env("XDG_RUNTIME_DIR", scene).output().unwrap()
}

#[test]
fn a_process_with_the_number_of_a_dead_member_is_neither_held_nor_shown() {
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let output = in_a_namespace(scene.path(), SCRIPT);
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((first, status)) = text.split_once('\n') else {
        skip!("no PID namespace to choose numbers in: {output:?}");
    };
    let (number, writes) = first.split_once(' ').unwrap();
    assert!(writes.parse::<u32>().unwrap() > 100, "{writes} writes in two seconds");
    let status: Value = serde_json::from_str(status).unwrap();
    let classes = status["classes"].as_array().unwrap().iter();
    let mut shown = classes.flat_map(|class| class["members"].as_array().unwrap());
    let number: u64 = number.parse().unwrap();
    assert!(shown.all(|member| member["process"] != number), "{status:#}");
}

#[test]
fn a_process_with_the_number_of_a_dead_member_is_attached_and_detached_as_any_other() {
    let scene = tempfile::tempdir_in("/var/tmp").unwrap();
    let output = in_a_namespace(scene.path(), ATTACHED);
    if output.status.code() == Some(77) || !scene.path().join("id").exists() {
        skip!("no PID namespace to choose numbers in: {output:?}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "attach 0\ndetach 0\nrm 0\n", "{output:?}");
}
