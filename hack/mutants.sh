#!/usr/bin/env bash
# Changes one operator at a time in the files that decide who loses what, and asks whether a test of their own package notices (gremlins). PKGS names
# the packages, FILES a regular expression of base names in each of them, WORKERS how many mutants are played at once. Results are kept in bin/mutants;
# the survivors are listed, and the reason of each that stays stands in docs/benchmarks/mutants.md.
# Only -short tests of the package are run: a mutant costs a compilation, a link and about a second. All packages take under two hours on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
go=${GO:-go}
results=$root/${BIN:-bin}/mutants
mkdir -p "$results"
$go build -modfile=tools/mutants.mod -o "$results/gremlins" github.com/go-gremlins/gremlins/cmd/gremlins

# A copy without bin/: gremlins copies the module once more for each worker.
copy=$(mktemp -d)
trap 'rm -rf "$copy" "$copy.go"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [[ ! -f $f ]] || printf '%s\0' "$f"; done | xargs -0 cp --parents -t "$copy"

# -short by GOFLAGS, since gremlins has no flag for it. Neither vet nor debug information decides whether a test fails.
export GOFLAGS="-short -vet=off -ldflags=-w" GOGC=${GOGC:-400}

# Gremlins plays only what the coverage profile counts, and that does not count the conditions of a switch, where most guards stand. So each line of a
# tested file counts: code without a test is then a survivor, too.
mkdir "$copy.go"
cat >"$copy.go/go" <<EOF
#!/usr/bin/env bash
set -euo pipefail
"$(command -v "$go")" "\$@"
while [[ \$# -gt 1 && \$1 != -coverprofile ]]; do shift; done
if [[ \$# -gt 1 ]]; then
	awk -F: 'NR > 1 && !seen[\$1]++ {print \$1 ":1.1,99999.1 1 1"}' "\$2" >"\$2.whole"
	cat "\$2.whole" >>"\$2"
fi
EOF
chmod +x "$copy.go/go"
export PATH=$copy.go:$PATH

# files answers which files of a package are changed: in the planner those that take machines, pods and replicas.
files() {
	case $1 in
	planner) echo '^(ladder|follow|lend|scale)\.go$' ;;
	*) echo . ;;
	esac
}

status=0
for pkg in ${PKGS:-agent/share internal/loop/protocol reclaim planner quota}; do
	want=${FILES:-$(files "$pkg")}
	args=(--workers "${WORKERS:-1}" --timeout-coefficient 10 --invert-logical --invert-loopctrl --output "$results/${pkg//\//-}.json")
	while IFS= read -r f; do
		[[ $f =~ $want ]] || args+=(-E "^${f//./\\.}\$")
	done < <(cd "$copy/$pkg" && ls -- *.go)
	echo "== $pkg"
	(cd "$copy" && "$results/gremlins" unleash "${args[@]}" --output-statuses lct "./$pkg") | tee "$results/${pkg//\//-}.txt" || status=1
done
exit $status
