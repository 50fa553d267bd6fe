-- A checkout, whole and in one round trip: the cart, the stock, the order, its payment, its shipment, the customer's
-- counts and the sellers' entries. The payment is approved. All rows of an order come in the state in which they stay.
--
-- Stocks come first, in the order of their keys: who is late waits there, and is undone by the other one's commit before
-- it has done much. Rows with a key of the order are inserted without a look at what is there.

CREATE TYPE order_line AS (
    number bigint, seller_id bigint, product_id bigint, product_name text, unit_price bigint, freight_value bigint,
    quantity bigint, total_items bigint, total_incentive bigint, total_amount bigint
);
CREATE TYPE low_change AS (seller_id bigint, product_id bigint, low boolean, level bigint, demand bigint);

CREATE FUNCTION checkout(by_whom buyer, OUT order_id bigint, OUT refused jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    whose CONSTANT bigint := by_whom.customer_id;
    of_order bigint;
    not_reserved jsonb := '[]';
    lines order_line[] := '{}';
    asked order_line[] := '{}';
    lows low_change[] := '{}';
    found_any boolean := false;
    item record;
    stock record;
    price bigint;
    incentive bigint;
BEGIN
    FOR item IN
        WITH taken AS (DELETE FROM items WHERE items.customer_id = whose RETURNING *)
        SELECT taken.*, replicas.price AS known_price, replicas.version AS known_version
        FROM taken LEFT JOIN replicas USING (seller_id, product_id)
        ORDER BY taken.seller_id, taken.product_id
    LOOP
        found_any := true;
        price := CASE WHEN item.known_version = item.version THEN item.known_price ELSE item.unit_price END;
        UPDATE stock_items AS new
        SET qty_available = new.qty_available - old.pieces, ytd = new.ytd + old.pieces,
            order_count = new.order_count + (old.pieces > 0)::int, demand = new.demand + item.quantity,
            low = new.demand + item.quantity > 4 * (old.available - old.pieces), updated_at = now()
        FROM (
            SELECT s.seller_id, s.product_id, s.low AS was_low, s.qty_available - s.qty_reserved AS available,
                s.active AND s.version = item.version AS offered,
                CASE WHEN s.active AND s.version = item.version AND item.quantity <= s.qty_available - s.qty_reserved
                    THEN item.quantity ELSE 0 END AS pieces
            FROM stock_items AS s WHERE s.seller_id = item.seller_id AND s.product_id = item.product_id
        ) AS old
        WHERE new.seller_id = item.seller_id AND new.product_id = item.product_id
        RETURNING old.available, old.offered, old.pieces, old.was_low, new.low, new.demand INTO stock;

        IF stock.low <> stock.was_low THEN
            lows := lows || ROW(item.seller_id, item.product_id, stock.low, stock.available - stock.pieces,
                stock.demand)::low_change;
        END IF;
        IF stock.available IS NOT NULL THEN
            asked := asked || ROW(0, item.seller_id, item.product_id, '', 0, 0, item.quantity, 0, 0, 0)::order_line;
        END IF;
        IF stock.pieces > 0 THEN
            incentive := least(item.voucher + greatest(0, price - item.added_price) * item.quantity,
                price * item.quantity);
            lines := lines || ROW(cardinality(lines) + 1, item.seller_id, item.product_id, item.product_name, price,
                item.freight_value, item.quantity, price * item.quantity, incentive,
                price * item.quantity - incentive)::order_line;
        ELSE
            not_reserved := not_reserved || jsonb_build_object(
                'seller_id', item.seller_id, 'product_id', item.product_id, 'quantity', item.quantity,
                'version', item.version, 'unit_price', price,
                'status', CASE WHEN stock.offered THEN 'OUT_OF_STOCK' ELSE 'UNAVAILABLE' END,
                'qty_available', coalesce(stock.available, 0));
        END IF;
    END LOOP;
    IF NOT found_any THEN
        RAISE EXCEPTION 'the cart of customer % is empty', whose USING ERRCODE = 'MKT01';
    END IF;

    IF cardinality(lines) > 0 THEN
        UPDATE counts SET last_order_id = last_order_id + 1, success_payment_count = success_payment_count + 1
        WHERE customer_id = whose RETURNING last_order_id INTO of_order;
    ELSE
        UPDATE counts SET failed_reservation_count = failed_reservation_count + 1 WHERE customer_id = whose;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no customer %', whose USING ERRCODE = 'MKT02';
    END IF;
    INSERT INTO checkouts VALUES (whose, by_whom.checkout_id, now(), of_order, not_reserved,
        CASE WHEN of_order IS NULL THEN now() END, CASE WHEN of_order IS NULL THEN 'NOT_RESERVED' ELSE '' END)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'checkout % came before', by_whom.checkout_id USING ERRCODE = 'MKT03';
    END IF;

    UPDATE carts SET products = 0, updated_at = now() WHERE customer_id = whose;
    DELETE FROM failures WHERE customer_id = whose AND failed_at >= now() - interval '10 minutes';
    INSERT INTO demand SELECT seller_id, product_id, date_trunc('hour', now(), 'UTC'), quantity FROM unnest(asked)
    ON CONFLICT (seller_id, product_id, hour) DO UPDATE SET quantity = demand.quantity + excluded.quantity;
    IF cardinality(lows) > 0 THEN
        PERFORM warn(lows);
    END IF;
    IF of_order IS NULL THEN
        INSERT INTO failures VALUES (whose, by_whom.checkout_id, now(), 'NOT_RESERVED');
    ELSE
        PERFORM place(by_whom, of_order, lines);
    END IF;
    order_id := of_order;
    refused := not_reserved;
END $$;

-- The rows of an order that is paid and packed.
CREATE FUNCTION place(by_whom buyer, of_order bigint, lines order_line[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    whose CONSTANT bigint := by_whom.customer_id;
    is_boleto CONSTANT boolean := by_whom.payment_type = 'BOLETO';
    invoice bigint;
BEGIN
    INSERT INTO orders
    SELECT whose, of_order, by_whom.checkout_id,
        whose || '-' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') || '-' || of_order, 'READY_FOR_SHIPMENT',
        now(), now(), NULL, NULL, NULL, count(*), sum(total_amount), sum(freight_value), sum(total_incentive),
        sum(total_amount + freight_value), sum(total_items), now(), now()
    FROM unnest(lines) RETURNING total_invoice INTO invoice;
    INSERT INTO order_items
    SELECT whose, of_order, number, seller_id, product_id, product_name, unit_price, freight_value, quantity,
        total_items, total_incentive, total_amount, now() + interval '3 days'
    FROM unnest(lines);
    INSERT INTO order_history VALUES
        (whose, of_order, now(), 'INVOICED', 1), (whose, of_order, now(), 'PAYMENT_PROCESSED', 2),
        (whose, of_order, now(), 'READY_FOR_SHIPMENT', 3);
    INSERT INTO payments
    SELECT whose, of_order, 1, by_whom.payment_type, CASE WHEN is_boleto THEN 1 ELSE by_whom.installments END,
        invoice, 'succeeded', now()
    UNION ALL
    SELECT whose, of_order, 1 + row_number() OVER (ORDER BY number), 'VOUCHER', 1, total_incentive, 'succeeded', now()
    FROM unnest(lines) WHERE total_incentive > 0;
    IF NOT is_boleto THEN
        INSERT INTO cards VALUES (whose, of_order, 1, by_whom.card_number, by_whom.card_holder_name,
            by_whom.card_expiration, by_whom.card_brand);
    END IF;
    INSERT INTO shipments
    SELECT whose, of_order, count(*), sum(freight_value), now(), 'approved', by_whom.first_name, by_whom.last_name,
        by_whom.street, by_whom.complement, by_whom.zip_code, by_whom.city, by_whom.state
    FROM unnest(lines);
    INSERT INTO packages
    SELECT whose, of_order, number, seller_id, product_id, product_name, freight_value, quantity, now(), NULL,
        'shipped'
    FROM unnest(lines);
    INSERT INTO entry_details
    SELECT DISTINCT seller_id, whose, of_order, by_whom.first_name, by_whom.last_name, by_whom.street,
        by_whom.complement, by_whom.zip_code, by_whom.city, by_whom.state, by_whom.card_brand, by_whom.installments
    FROM unnest(lines);
    INSERT INTO order_entries
    SELECT seller_id, whose, of_order, product_id, whose || '|' || of_order, number, product_name, NULL, unit_price,
        quantity, total_items, total_amount, total_incentive, freight_value, total_amount + freight_value, now(), NULL,
        'READY_FOR_SHIPMENT', 'shipped'
    FROM unnest(lines);
END $$;

-- Tells sellers of which products too little is left, or no longer.
CREATE FUNCTION warn(lows low_change[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM low_stock USING unnest(lows) AS one
    WHERE low_stock.seller_id = one.seller_id AND low_stock.product_id = one.product_id AND NOT one.low;
    INSERT INTO low_stock SELECT seller_id, product_id, level, demand, now() FROM unnest(lows) WHERE low
    ON CONFLICT (seller_id, product_id) DO UPDATE
    SET level = excluded.level, demand = excluded.demand, since = excluded.since;
$$;
