#!/bin/sh
# Fetches what china_table.mjs needs into a folder that is thrown away, and writes china_table.go.
set -eu
d=$(mktemp -d)
trap 'rm -r "$d"' EXIT
npm install --silent --ignore-scripts --prefix "$d" lunar-javascript@1.7.7 chinese-days@1.5.7
cp china_table.mjs "$d"
(cd "$d" && node china_table.mjs)
gofmt "$d/china_table.go" > china_table.go
