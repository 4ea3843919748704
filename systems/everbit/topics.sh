#!/bin/sh
# Creates the topics of topics.txt: ./topics.sh BROKER:PORT [REPLICATION]. It needs kafka-topics.sh in the PATH.
set -eu
broker=${1:?usage: topics.sh BROKER:PORT [REPLICATION]}
replication=${2:-3}
grep -v '^#' "$(dirname "$0")/topics.txt" | while read -r name partitions settings; do
    [ -n "$name" ] || continue
    configs=
    for setting in $settings; do configs="$configs --config $setting"; done
    # shellcheck disable=SC2086
    kafka-topics.sh --bootstrap-server "$broker" --create --if-not-exists --topic "$name" \
        --partitions "$partitions" --replication-factor "$replication" $configs
done
