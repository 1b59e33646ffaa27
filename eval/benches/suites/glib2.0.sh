# GLib, with GObject, GModule and GIO: programs run by meson, those that need no message bus.
# MESON names meson, where it is not in the PATH; TESTS narrows it to meson's suites ("glib:glib
# glib:gobject"), of which build makes nothing else where TARGETS names what they need.

build() {
    [ -f build/build.ninja ] || ${MESON:-meson} setup build -Doptimization=1 -Ddebug=false \
        -Dlibmount=disabled -Dselinux=disabled -Dnls=disabled -Dman=false -Dgtk_doc=false || return
    ninja -C build ${TARGETS:-}
}

check() {
    "$@" ${MESON:-meson} test --timeout-multiplier 3 -C build --no-rebuild --no-suite dbus \
        $(for suite in ${TESTS:-}; do echo "--suite $suite"; done)
}

# " 12/300 glib:glib / array-test    OK    0.12s"
results() {
    sed -n 's/^ *[0-9]*\/[0-9]* [^ ]* \/ \([^ ]*\)  *\([A-Z]*\)  *[0-9.]*s.*/\2 \1/p'
}

alone() {
    test=$1
    shift
    "$@" ${MESON:-meson} test --timeout-multiplier 3 -C build --no-rebuild "$test"
}
