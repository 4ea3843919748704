#!/bin/sh
# Creates the topics of the shop on three brokers or more. The programs never create one.
#   sh topics.sh broker-1:9092,broker-2:9092,broker-3:9092
# On a single broker for a demonstration: REPLICAS=1 MIN_INSYNC=1 sh topics.sh 127.0.0.1:9092
set -eu
brokers=${1:?usage: topics.sh HOST:PORT[,HOST:PORT…]}
replicas=${REPLICAS:-3}
here=$(dirname "$0")
grep -v '^#' "$here/topics.txt" | while read -r name partitions settings; do
    [ -n "$name" ] || continue
    set -- --create --if-not-exists --bootstrap-server "$brokers" --topic "$name" --partitions "$partitions" --replication-factor "$replicas"
    for setting in $settings; do
        case $setting in
            min.insync.replicas=*) setting="min.insync.replicas=${MIN_INSYNC:-${setting#*=}}" ;;
        esac
        set -- "$@" --config "$setting"
    done
    # Its input is the list of topics.
    kafka-topics.sh "$@" < /dev/null
done
