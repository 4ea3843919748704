// A shop in Java. It takes payments, and records each in the transaction that changes the order.
//
// DATABASE_URL=jdbc:postgresql://... java -cp postgresql.jar Publisher.java [PAYMENTS]

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

public class Publisher {
    static class Declined extends Exception {}

    static void pay(Connection connection, int order, int attempt, boolean declined) throws Exception {
        connection.setAutoCommit(false);
        try (var change = connection.prepareStatement(
                     "update orders set payments = payments + 1 where id = ? returning payments");
             var record = connection.prepareStatement(
                     "select postrider.record('orders', 'OrderPaid', 'Order', ?, ?::json)")) {
            // The change comes first: it locks the order, so that its events have the order of its changes.
            change.setInt(1, order);
            var changed = change.executeQuery();
            changed.next();
            var payment = changed.getInt(1);
            record.setString(1, String.valueOf(order));
            record.setString(2, String.format(
                    "{\"order\": %d, \"payment\": %d, \"attempt\": %d}", order, payment, attempt));
            record.executeQuery();
            if (declined) throw new Declined();
            connection.commit();
        } catch (SQLException | Declined failure) {
            connection.rollback();
            throw failure;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var payments = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 10;
        try (var connection = DriverManager.getConnection(System.getenv("DATABASE_URL"))) {
            for (var attempt = 0; attempt < payments; attempt++) {
                try {
                    pay(connection, attempt % 7 + 1, attempt, attempt % 5 == 4);
                } catch (Declined declined) {
                    System.err.println("attempt " + attempt + " was declined");
                }
            }
        }
    }
}
