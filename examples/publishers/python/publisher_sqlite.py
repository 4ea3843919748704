"""A shop in Python on SQLite. It takes payments, and records each in the transaction that changes the order.

python publisher_sqlite.py shop.db [PAYMENTS]
"""

import json
import sqlite3
import sys


def pay(connection, order, attempt, declined=False):
    # Immediate: a transaction that may write from the start waits for its turn, and can't fail later for want of it.
    connection.execute("begin immediate")
    (payment,) = connection.execute(
        "update orders set payments = payments + 1 where id = ? returning payments", [order]
    ).fetchone()
    event = {"order": order, "payment": payment, "attempt": attempt}
    connection.execute(
        "insert into postrider_event (stream, event_type, aggregate_type, aggregate_id, payload)"
        " values ('orders', 'OrderPaid', 'Order', ?, ?)",
        [str(order), json.dumps(event)],
    )
    connection.execute("rollback" if declined else "commit")


def main():
    connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
    connection.execute("create table if not exists orders (id integer primary key, payments integer not null default 0)")
    connection.executemany("insert or ignore into orders (id) values (?)", [(order,) for order in range(1, 8)])
    for attempt in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        pay(connection, order=attempt % 7 + 1, attempt=attempt, declined=attempt % 5 == 4)
    connection.close()


if __name__ == "__main__":
    main()
