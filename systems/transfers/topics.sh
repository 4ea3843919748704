#!/bin/sh
# Creates the topics of topics.txt: BROKERS=host:9092 REPLICAS=3 ./topics.sh
# The programs never create a topic.
set -eu
cd "$(dirname "$0")"
brokers=${BROKERS:?"BROKERS must be set, as in host:9092"}
replicas=${REPLICAS:-3}
grep -v -e '^#' -e '^$' topics.txt | while read -r name partitions settings; do
    set --
    for setting in $settings; do
        # One broker can't keep a promise of two copies.
        if [ "$replicas" -lt 2 ] && [ "$setting" = "min.insync.replicas=2" ]; then continue; fi
        set -- "$@" --config "$setting"
    done
    kafka-topics.sh --bootstrap-server "$brokers" --create --if-not-exists --topic "$name" \
        --partitions "$partitions" --replication-factor "$replicas" "$@" </dev/null
done
