//! Completions of shells: those that clap writes, which know options and subcommands, with what they do not know: names of
//! classes, processes that run, and the command behind the options of `run`. The program tells the first two.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Command;
use clap_complete::{Shell, generate};

/// Writes the files for bash, zsh and fish.
pub fn write(folder: &Path, program: &Command) -> anyhow::Result<()> {
    let made = |shell| {
        let mut text = Vec::new();
        generate(shell, &mut program.clone(), "discnice", &mut text);
        String::from_utf8(text).map(|text| without_hidden(&text)).context("completions in UTF-8")
    };
    let bash = made(Shell::Bash)?
        + &BASH.replace("@VALUED@", &valued(program)?).replace("@OTHERS@", &others(program));
    let files = [
        ("discnice.bash", bash),
        ("_discnice", zsh(&made(Shell::Zsh)?)?),
        ("discnice.fish", made(Shell::Fish)? + &FISH.replace("@VALUED@", valued(program)?.trim())),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Completions that do not offer the subcommand that they ask themselves: clap offers hidden ones, too.
fn without_hidden(text: &str) -> String {
    let offers =
        |line: &str| line.contains("'complete-names:") || line.contains("-a \"complete-names\"");
    let lines = text.lines().filter(|line| !offers(line));
    let lines = lines.map(|line| line.replace(" complete-names\"", "\"") + "\n");
    lines.collect()
}

/// The options of `run` and `admit` with a value that may be a word of its own, each between spaces.
fn valued(program: &Command) -> anyhow::Result<String> {
    let mut words = String::from(" ");
    for name in ["run", "admit"] {
        let subcommand =
            program.find_subcommand(name).with_context(|| format!("no subcommand {name}"))?;
        for option in subcommand.get_opts() {
            if !option.get_action().takes_values() || option.is_require_equals_set() {
                continue;
            }
            words.extend(option.get_long().map(|long| format!("--{long} ")));
            words.extend(option.get_short().map(|short| format!("-{short} ")));
        }
    }
    Ok(words)
}

/// The subcommands that start no command, as a pattern of bash.
fn others(program: &Command) -> String {
    let others =
        program.get_subcommands().filter(|one| !["run", "admit"].contains(&one.get_name()));
    let names = others.flat_map(|one| std::iter::once(one.get_name()).chain(one.get_all_aliases()));
    names.chain(["help"]).collect::<Vec<_>>().join(" | ")
}

/// Completes before what clap knows, which is asked for all the rest.
const BASH: &str = r#"
_discnice_offer() {
    local cur=$1 name
    shift
    COMPREPLY=()
    while IFS= read -r name; do
        [[ -n $name && $name == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <(for what; do discnice complete-names "$what" 2>/dev/null; done | cut -f1)
}

# Where the command stands behind the options of run: its place, or nothing.
_discnice_command() {
    local at=$1 word
    for ((; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        case $word in
            --) echo $((at + 1)); return ;;
            -*) [[ "@VALUED@" == *" $word "* && ${COMP_WORDS[at + 1]} != = ]] && ((at++)) ;;
            =) ((at++)) ;;
            *) echo "$at"; return ;;
        esac
    done
}

_discnice_known() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} sub=${COMP_WORDS[1]} at=
    case $sub in
        run | admit) at=$(_discnice_command 2) ;;
        -*) at=$(_discnice_command 1) ;;
        @OTHERS@) ;;
        *) at=1 ;;
    esac
    # The first word may be a subcommand as well, which clap knows.
    if [[ -n $at ]] && ((at <= COMP_CWORD && COMP_CWORD > 1)); then
        if ((at == COMP_CWORD)); then
            COMPREPLY=($(compgen -c -- "$cur"))
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$at"
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        return
    fi
    case $prev in
        -c | --class) _discnice_offer "$cur" classes; return ;;
    esac
    if [[ $cur != -* && $COMP_CWORD -gt 1 ]]; then
        case $sub in
            attach) _discnice_offer "$cur" processes; return ;;
            detach) _discnice_offer "$cur" members; return ;;
            pause | explain) _discnice_offer "$cur" classes processes; return ;;
            resume) _discnice_offer "$cur" classes members; return ;;
            class)
                case ${COMP_WORDS[2]} in
                    show | set | rm) ((COMP_CWORD == 3)) && { _discnice_offer "$cur" classes; return; } ;;
                esac ;;
        esac
    fi
    if [[ $sub == -* ]]; then
        # Options of run may stand without it.
        COMP_WORDS=(discnice run "${COMP_WORDS[@]:1}")
        ((COMP_CWORD++))
    fi
    _discnice "$@"
}

complete -F _discnice_known -o bashdefault -o default discnice
"#;

const ZSH: &str = r#"
_discnice_offer() {
    local what line
    local -a names described
    for what; do
        for line in ${(f)"$(discnice complete-names $what 2>/dev/null)"}; do
            names+=("${line%%$'\t'*}")
            described+=("${line/$'\t'/ }")
        done
    done
    compadd -d described -a names
}
_discnice_classes() { _discnice_offer classes }
_discnice_processes() { _discnice_offer processes }
_discnice_members() { _discnice_offer members }
_discnice_subjects() { _discnice_offer classes processes }

"#;

/// Names of arguments as clap writes them, and what completes them.
const ZSH_ARGUMENTS: &[(&str, &str)] = &[
    ("]:NAME:_default'", "]:NAME:_discnice_classes'"),
    ("':name -- Name of the class:_default'", "':name -- Name of the class:_discnice_classes'"),
    (
        "'*::pids -- PIDs of the processes:_default'",
        "'*::pids -- PIDs of the processes:_discnice_processes'",
    ),
    (
        "'*::subjects -- Names of classes, or PIDs:_default'",
        "'*::subjects -- Names of classes, or PIDs:_discnice_subjects'",
    ),
    ("':subject -- What to explain:_default'", "':subject -- What to explain:_discnice_subjects'"),
];

fn zsh(made: &str) -> anyhow::Result<String> {
    let end = "if [ \"$funcstack[1]\" = \"_discnice\" ]; then";
    ensure!(made.contains(end), "clap ends its completions of zsh in another way");
    let mut text = made.replace(end, &format!("{}{end}", ZSH.trim_start()));
    for (before, after) in ZSH_ARGUMENTS {
        ensure!(text.contains(before), "clap does not write {before} for zsh");
        text = text.replace(before, after);
    }
    Ok(text)
}

const FISH: &str = "
complete -c discnice -n '__fish_discnice_using_subcommand run' -s c -l class -x -a '(discnice complete-names classes)'
complete -c discnice -n '__fish_discnice_using_subcommand run; or __fish_discnice_using_subcommand admit' -f -a '(__fish_complete_subcommand --fcs-skip=2 @VALUED@)'
complete -c discnice -n '__fish_discnice_using_subcommand attach' -l class -x -a '(discnice complete-names classes)'
complete -c discnice -n '__fish_discnice_using_subcommand attach' -f -a '(discnice complete-names processes)'
complete -c discnice -n '__fish_discnice_using_subcommand detach' -f -a '(discnice complete-names members)'
complete -c discnice -n '__fish_discnice_using_subcommand pause; or __fish_discnice_using_subcommand explain' -f -a '(discnice complete-names classes; discnice complete-names processes)'
complete -c discnice -n '__fish_discnice_using_subcommand resume' -f -a '(discnice complete-names classes; discnice complete-names members)'
complete -c discnice -n '__fish_discnice_using_subcommand class; and __fish_seen_subcommand_from show set rm' -f -a '(discnice complete-names classes)'
";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command as Process;

    use clap::CommandFactory;

    use super::*;

    /// The program as far as completions ask it.
    const PROGRAM: &str = "#!/bin/sh\ncase \"$1 $2\" in\n\
        'complete-names classes') printf 'nightly\\ntwo words\\n' ;;\n\
        'complete-names processes') printf '4711\\tmake\\n4712\\tcc\\n' ;;\n\
        'complete-names members') printf '4711\\tmake\\n' ;;\nesac\n";

    #[test]
    fn bash_completes_classes_processes_and_the_command() {
        let folder = std::env::temp_dir().join(format!("discnice-shells-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = discnice_cli::commands::Cli::command().disable_help_subcommand(true);
        write(&folder, &program).unwrap();
        fs::write(folder.join("discnice"), PROGRAM).unwrap();
        fs::set_permissions(folder.join("discnice"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.join("only-this-command"), PROGRAM).unwrap();
        fs::set_permissions(folder.join("only-this-command"), fs::Permissions::from_mode(0o755))
            .unwrap();
        let complete = |line: &str| {
            let script = format!(
                "PATH=$0:$PATH; . $0/discnice.bash; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))\n\
                 _discnice_known discnice \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
                 printf '%s|' \"${{COMPREPLY[@]}}\""
            );
            let mut bash = Process::new("bash");
            let said = bash.args(["--norc", "-c", &script]).arg(&folder).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stderr), "", "{line}");
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        for (line, offered) in [
            ("discnice pause ni", "nightly|"),
            ("discnice pause 4", "4711|4712|"),
            ("discnice resume 4", "4711|"),
            ("discnice attach 47", "4711|4712|"),
            ("discnice detach 47", "4711|"),
            ("discnice explain ni", "nightly|"),
            ("discnice class set two", "two\\ words|"),
            ("discnice run -c ni", "nightly|"),
            ("discnice run --class ni", "nightly|"),
            ("discnice -c ni", "nightly|"),
            ("discnice run -d 5M only-this-c", "only-this-command|"),
            ("discnice run --disk = 5M only-this-c", "only-this-command|"),
            ("discnice -d 5M only-this-c", "only-this-command|"),
            ("discnice run -d 5M cat /etc/hostn", "/etc/hostname|"),
            ("discnice cat /etc/hostn", "/etc/hostname|"),
            ("discnice run --disk-r", "--disk-read|"),
            ("discnice --disk-r", "--disk-read|"),
            ("discnice complete-", "|"),
            ("discnice pau", "pause|"),
            ("discnice linger --jso", "--json|"),
            ("discnice ps --jso", "--json|"),
        ] {
            let got = complete(line);
            // What else a machine has of the same beginning is its own affair.
            assert!(
                got == offered || got.starts_with(&offered[..offered.len() - 1]),
                "{line}: {got}"
            );
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_shell_offers_what_completions_ask() {
        let program = discnice_cli::commands::Cli::command();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            generate(shell, &mut program.clone(), "discnice", &mut text);
            let text = without_hidden(&String::from_utf8(text).unwrap());
            let offered = ["complete-names\"", "'complete-names:", "-a \"complete-names"];
            assert!(!offered.iter().any(|one| text.contains(one)), "{shell}");
        }
    }
}
