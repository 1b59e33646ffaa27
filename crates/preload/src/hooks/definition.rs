//! How functions are defined that take the place of libc's.

/// Defines exported functions that take the place of libc's.
///
/// `fn [pread pread64] (fd: c_int, …) -> isize, real => { … }` defines one function for each name
/// that calls the same body, in which `real` is libc's function of that name.
///
/// With `free by …` before the arrow a call of which one of those two questions of [`crate::free`]
/// says so goes straight to libc, by a jump where nothing follows; `then …` names what its result
/// passes through.
macro_rules! hooks {
    ($(
        $(#[doc = $doc:literal])+
        fn [$($name:ident)+] $arguments:tt $(-> $result:ty)? , $real:ident
        $(, free by $free:ident $asked:tt $(, then $then:path)?)? => $body:block
    )+) => {
        $( hooks!(@family [$($name)+] [$($doc)+] $arguments [$($result)?] $real
            [$($free $asked $(, $then)?)?] $body); )+
    };
    (@family [$name:ident] $doc:tt $arguments:tt $result:tt $real:ident $free:tt $body:block) => {
        hooks!(@one $name $doc $arguments $result $real $free $body);
    };
    // One body of which there is one copy; its module is called as no file of hooks is.
    (@family [$name:ident $shared:ident $($more:ident)*] $doc:tt $arguments:tt $result:tt $real:ident $free:tt
        $body:block) => {
        hooks!(@shared $shared $arguments $result $real $body);
        hooks!(@each [$name $shared $($more)*] $shared $doc $arguments $result $free);
    };
    (@shared $shared:ident ($($argument:ident : $type:ty),* $(,)?) [$($result:ty)?] $real:ident $body:block) => {
        mod $shared {
            use super::*;

            type Signature = unsafe extern "C" fn($($type),*) $(-> $result)?;

            #[inline(never)]
            pub(super) unsafe fn by($($argument: $type,)* $real: Signature) $(-> $result)? $body
        }
    };
    (@free $way:ident, $known:ident, $signed:ident, $arguments:tt, []) => {};
    (@free $way:ident, $known:ident, $signed:ident, $arguments:tt, [$free:ident $asked:tt $(, $then:path)?]) => {
        if $crate::free::$way::$free $asked && let Some(address) = $known.known() {
            // SAFETY: the program's own arguments.
            let result = unsafe { $signed(address) $arguments };
            $( let result = $then(result); )?
            return result;
        }
    };
    (@first) => { None };
    (@first $argument:ident $($more:ident)*) => { $crate::trace::Argument::number(&$argument) };
    (@each [] $($rest:tt)*) => {};
    (@each [$name:ident $($more:ident)*] $shared:ident $doc:tt ($($argument:ident : $type:ty),* $(,)?) $result:tt
        $free:tt) => {
        hooks!(@one $name $doc ($($argument: $type),*) $result real $free {
            // SAFETY: the caller's own promise, and libc's function.
            unsafe { $shared::by($($argument,)* real) }
        });
        hooks!(@each [$($more)*] $shared $doc ($($argument: $type),*) $result $free);
    };
    (@one $name:ident [$($doc:literal)+] ($($argument:ident : $type:ty),* $(,)?) [$($result:ty)?] $real:ident
        $free:tt $body:block) => {
        $(#[doc = $doc])+
        ///
        /// # Safety
        /// As libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            const NAME: &core::ffi::CStr = {
                const TEXT: &str = concat!(stringify!($name), "\0");
                match core::ffi::CStr::from_bytes_with_nul(TEXT.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                }
            };
            $crate::real::reals! { REAL = NAME; }
            type Signature = unsafe extern "C" fn($($type),*) $(-> $result)?;
            #[inline(always)]
            fn signed(address: *mut core::ffi::c_void) -> Signature {
                // SAFETY: libc's function of this name has this signature; one that libc lacks is
                // replaced by a function that ignores its arguments.
                unsafe { core::mem::transmute::<*mut core::ffi::c_void, Signature>(address) }
            }
            // Each way is a function, so that what the longer ones need costs the shorter nothing.
            #[inline(never)]
            unsafe extern "C" fn long($($argument: $type),*) $(-> $result)? {
                let $real = signed(REAL.get());
                $body
            }
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn traced($($argument: $type),*) $(-> $result)? {
                let begun = $crate::trace::begin();
                let first = hooks!(@first $($argument)*);
                // SAFETY: the caller's own promise.
                let answer = unsafe { long($($argument),*) };
                $crate::trace::end(NAME, first, $crate::trace::Answer::value(&answer), begun);
                answer
            }
            #[inline(never)]
            unsafe extern "C" fn held($($argument: $type),*) $(-> $result)? {
                hooks!(@free held, REAL, signed, ($($argument),*), $free);
                if $crate::trace::is_on() {
                    // SAFETY: the caller's own promise.
                    return unsafe { traced($($argument),*) };
                }
                // SAFETY: the caller's own promise.
                unsafe { long($($argument),*) }
            }
            hooks!(@free unheld, REAL, signed, ($($argument),*), $free);
            // SAFETY: the caller's own promise.
            unsafe { held($($argument),*) }
        }
    };
}
pub(crate) use hooks;
