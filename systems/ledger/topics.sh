#!/bin/sh
# Creates the topics of topics.txt: ./topics.sh BROKER:PORT [REPLICATION]. It needs kafka-topics.sh in the PATH.
set -eu
broker=${1:?usage: topics.sh BROKER:PORT [REPLICATION]}
replication=${2:-3}
grep -v '^#' "$(dirname "$0")/topics.txt" | while read -r name partitions settings; do
    [ -n "$name" ] || continue
    set --
    for setting in $settings; do
        # One broker can't have two replicas in step.
        [ "$replication" -ge 2 ] || [ "${setting%%=*}" != min.insync.replicas ] || continue
        set -- "$@" --config "$setting"
    done
    # Its input is the list of topics.
    kafka-topics.sh --bootstrap-server "$broker" --create --if-not-exists --topic "$name" \
        --partitions "$partitions" --replication-factor "$replication" "$@" < /dev/null
done
