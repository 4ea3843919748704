"""A shop in Python. It takes payments, and records each in the transaction that changes the order.

DATABASE_URL=postgres://... python publisher.py [PAYMENTS]
"""

import json
import os
import sys

import psycopg


class Declined(Exception):
    """The bank says no: neither the payment nor its event is to stay."""


def pay(connection, order, attempt, declined=False):
    with connection.transaction():
        # The change comes first: it locks the order, so that its events have the order of its changes.
        changed = connection.execute(
            "update orders set payments = payments + 1 where id = %s returning payments", [order]
        )
        (payment,) = changed.fetchone()
        event = {"order": order, "payment": payment, "attempt": attempt}
        connection.execute(
            "select postrider.record('orders', 'OrderPaid', 'Order', %s, %s)",
            [str(order), json.dumps(event)],
        )
        if declined:
            raise Declined


def main():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        for attempt in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
            try:
                pay(connection, order=attempt % 7 + 1, attempt=attempt, declined=attempt % 5 == 4)
            except Declined:
                print(f"attempt {attempt} was declined", file=sys.stderr)


if __name__ == "__main__":
    main()
