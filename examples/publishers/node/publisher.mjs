// A shop in JavaScript. It takes payments, and records each in the transaction that changes the order.
//
// DATABASE_URL=postgres://... node publisher.mjs [PAYMENTS]

import pg from "pg";

async function pay(client, order, attempt, declined) {
  await client.query("begin");
  try {
    // The change comes first: it locks the order, so that its events have the order of its changes.
    const changed = await client.query(
      "update orders set payments = payments + 1 where id = $1 returning payments",
      [order],
    );
    const event = { order, payment: changed.rows[0].payments, attempt };
    await client.query("select postrider.record('orders', 'OrderPaid', 'Order', $1, $2)", [
      String(order),
      JSON.stringify(event),
    ]);
    if (declined) throw new Error(`attempt ${attempt} was declined`);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
for (let attempt = 0; attempt < Number(process.argv[2] ?? 10); attempt++) {
  const declined = attempt % 5 === 4;
  try {
    await pay(client, (attempt % 7) + 1, attempt, declined);
  } catch (error) {
    if (!declined) throw error;
    console.error(error.message);
  }
}
await client.end();
