# Makes each user's login sessions one class, if /etc/discnice/config.toml, or the user's own config.toml, has a section
# [class.session]. Read by login shells; whatever fails here, the shell goes on as it is.
#
# The shell is executed anew, in its own place, as a member of the class. The mark in its environment tells it to read on.
# Other shells than interactive ones have commands that cannot be begun again: for those of ssh, see ForceCommand in
# docs/recipes/login-nodes.md.
case $- in
*i*)
    if [ -z "${DISCNICE_SESSION+set}" ]; then
        __discnice=$(command -v discnice) && __discnice_shell=$(readlink "/proc/$$/exe") &&
            "$__discnice" --version >/dev/null 2>&1 && exec "$__discnice" enter "$__discnice_shell"
    elif [ "$DISCNICE_SESSION" = session ] && [ -n "${BASH_VERSION:-}${ZSH_VERSION:-}" ] &&
        command -v discnice >/dev/null; then
        # After a command of ten seconds or more: did it wait for the limit? Its exit status is for what asks next.
        __discnice_prompt() {
            set -- $?
            if [ $((SECONDS - ${__discnice_at:-0})) -ge 10 ]; then
                __discnice_waited=$(discnice enter --held-since "${__discnice_waited:-0}")
            fi
            __discnice_at=$SECONDS
            return "$1"
        }
        __discnice_at=$SECONDS __discnice_waited=$(discnice enter --held-since 1e9)
        if [ -n "${BASH_VERSION:-}" ]; then
            PROMPT_COMMAND="__discnice_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
        else
            eval 'precmd_functions+=(__discnice_prompt)'
        fi
    fi
    unset __discnice __discnice_shell
    ;;
esac
