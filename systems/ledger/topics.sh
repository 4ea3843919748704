#!/bin/sh
# Creates the topics of topics.txt that don't exist: ./topics.sh BROKER:PORT [REPLICAS]
# kafka-topics.sh must be on the PATH. The programs of this system never create a topic.
set -eu
brokers=${1:?usage: topics.sh BROKER:PORT [REPLICAS]}
replicas=${2:-3}
grep -v '^ *#' "$(dirname "$0")/topics.txt" | while read -r name partitions settings; do
    [ -n "$name" ] || continue
    set --
    for setting in $settings; do
        # One broker can't have two replicas in step.
        [ "$replicas" -ge 2 ] || [ "${setting%%=*}" != min.insync.replicas ] || continue
        set -- "$@" --config "$setting"
    done
    kafka-topics.sh --bootstrap-server "$brokers" --create --if-not-exists --topic "$name" \
        --partitions "$partitions" --replication-factor "$replicas" "$@"
done
