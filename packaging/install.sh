#!/bin/sh
# Installs DiscNice for one user, without root: install.sh [PREFIX], by default ~/.local.
#     PREFIX/lib/discnice/uninstall.sh removes it again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: install.sh [PREFIX], by default ~/.local; PREFIX/lib/discnice/uninstall.sh removes it again"
case ${1:-} in
    -h | --help) echo "$usage"; exit 0 ;;
    -*) echo "install.sh: unknown option $1; $usage" >&2; exit 125 ;;
esac
[ $# -le 1 ] || { echo "install.sh: too many arguments; $usage" >&2; exit 125; }
[ -n "${1:-${HOME:-}}" ] || { echo "install.sh: HOME is not set; give a PREFIX" >&2; exit 125; }
prefix=${1:-$HOME/.local}
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
list=lib/discnice/installed

cd "$here/files"
# The prefix as systemd reads it between quotes, and that as sed reads it.
unit=$(printf '%s' "$prefix" | sed 's/%/%%/g; s/[\\&|]/\\&/g')
# The name is taken at once: what runs keeps the old file, what starts finds a whole one.
find . -type f | sed 's|^\./||' | while read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    case $file in
        *.service) sed "s|@PREFIX@|$unit|g" "$file" >"$prefix/$file.new" ;;
        *) cp -p "$file" "$prefix/$file.new" ;;
    esac
    mv -f "$prefix/$file.new" "$prefix/$file"
done
{ find . -type f | sed 's|^\./||'; echo "$list"; echo lib/discnice/uninstall.sh; } >"$prefix/$list.new"
# What only the version before had goes now, as nothing would know of it later.
cd "$prefix"
[ ! -f "$list" ] || grep -vxFf "$list.new" "$list" | while read -r file; do
    rm -f "$file"
    rmdir -p "$(dirname "$file")" 2>/dev/null || true
done
mv -f "$list.new" "$list"

cat >"$prefix/lib/discnice/uninstall.sh" <<'END'
#!/bin/sh
# Removes what install.sh installed, and folders that are empty then.
set -eu
prefix=$(cd "$(dirname "$0")/../.." && pwd)
cd "$prefix"
files=$(cat lib/discnice/installed)
echo "$files" | while read -r file; do
    rm -f "$file"
    rmdir -p "$(dirname "$file")" 2>/dev/null || true
done
cd /
rmdir "$prefix" 2>/dev/null || true
END
chmod 755 "$prefix/lib/discnice/uninstall.sh"
echo "installed: $prefix/bin/discnice; $prefix/lib/discnice/uninstall.sh removes it again"
case ":$PATH:" in *":$prefix/bin:"*) ;; *) echo "$prefix/bin is not in PATH" ;; esac
