-- The marketplace's tables, which have the columns of ours, in their order, behind the key of the entity.
--
-- Under SERIALIZABLE a query by an index reads the index's whole page, and is then in conflict with an insert by anybody
-- else into that page. So a checkout reads no index into which other checkouts insert: hence no foreign keys to the rows
-- that it writes, a number of the last order with the customer's counts, and a number of products with the cart.
-- What is updated has room in its pages (fillfactor), so that an update touches no index.

CREATE TABLE products (
    seller_id bigint, product_id bigint,
    name text NOT NULL, sku text NOT NULL, category text NOT NULL, description text NOT NULL,
    price bigint NOT NULL CHECK (price >= 0), freight_value bigint NOT NULL CHECK (freight_value >= 0),
    status text NOT NULL, version text NOT NULL, active boolean NOT NULL,
    created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL, change bigint NOT NULL,
    PRIMARY KEY (seller_id, product_id)
) WITH (fillfactor = 50);

CREATE TABLE replicas (
    seller_id bigint, product_id bigint,
    price bigint NOT NULL, version text NOT NULL, active boolean NOT NULL, change bigint NOT NULL,
    PRIMARY KEY (seller_id, product_id)
) WITH (fillfactor = 50);

CREATE TABLE stock_items (
    seller_id bigint, product_id bigint,
    qty_available bigint NOT NULL CHECK (qty_available >= 0), qty_reserved bigint NOT NULL CHECK (qty_reserved >= 0),
    order_count bigint NOT NULL, ytd bigint NOT NULL, data text NOT NULL,
    version text NOT NULL, active boolean NOT NULL, created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL,
    demand bigint NOT NULL, low boolean NOT NULL,
    PRIMARY KEY (seller_id, product_id),
    FOREIGN KEY (seller_id, product_id) REFERENCES products ON DELETE CASCADE,
    CONSTRAINT reserved_is_available CHECK (qty_reserved <= qty_available)
) WITH (fillfactor = 50);

CREATE TABLE demand (
    seller_id bigint, product_id bigint, hour timestamptz, quantity bigint NOT NULL,
    PRIMARY KEY (seller_id, product_id, hour)
) WITH (fillfactor = 50);

CREATE TABLE customers (
    customer_id bigint PRIMARY KEY,
    first_name text NOT NULL, last_name text NOT NULL, address text NOT NULL, complement text NOT NULL,
    birth_date text NOT NULL, zip_code text NOT NULL, city text NOT NULL, state text NOT NULL,
    card_number text NOT NULL, card_security_number text NOT NULL, card_expiration text NOT NULL,
    card_holder_name text NOT NULL, card_type text NOT NULL, data text NOT NULL
);

CREATE TABLE counts (
    customer_id bigint PRIMARY KEY,
    success_payment_count bigint NOT NULL, failed_payment_count bigint NOT NULL, delivery_count bigint NOT NULL,
    failed_reservation_count bigint NOT NULL, abandoned_cart_count bigint NOT NULL,
    last_order_id bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE sellers (
    seller_id bigint PRIMARY KEY,
    name text NOT NULL, company_name text NOT NULL, email text NOT NULL, phone text NOT NULL,
    mobile_phone text NOT NULL, cpf text NOT NULL, cnpj text NOT NULL, address text NOT NULL,
    complement text NOT NULL, city text NOT NULL, state text NOT NULL, zip_code text NOT NULL
);

CREATE TABLE carts (
    customer_id bigint PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    products bigint NOT NULL CONSTRAINT cart_is_full CHECK (products <= 100)
) WITH (fillfactor = 50);

CREATE TABLE items (
    customer_id bigint, seller_id bigint, product_id bigint,
    product_name text NOT NULL, unit_price bigint NOT NULL, freight_value bigint NOT NULL, quantity bigint NOT NULL,
    voucher bigint NOT NULL, version text NOT NULL, added_price bigint NOT NULL,
    PRIMARY KEY (customer_id, seller_id, product_id)
);

CREATE TABLE checkouts (
    customer_id bigint, checkout_id text,
    at timestamptz NOT NULL, order_id bigint, refused jsonb NOT NULL,
    failed_at timestamptz, cause text NOT NULL, abandoned_at timestamptz,
    PRIMARY KEY (customer_id, checkout_id)
);

CREATE TABLE failures (
    customer_id bigint, checkout_id text, failed_at timestamptz NOT NULL, cause text NOT NULL,
    PRIMARY KEY (customer_id, checkout_id)
);

CREATE TABLE orders (
    customer_id bigint, order_id bigint,
    checkout_id text NOT NULL, invoice_number text NOT NULL, status text NOT NULL,
    purchase_date timestamptz NOT NULL, payment_date timestamptz, delivered_carrier_date timestamptz,
    delivered_customer_date timestamptz, estimated_delivery_date timestamptz,
    count_items bigint NOT NULL, total_amount bigint NOT NULL, total_freight bigint NOT NULL,
    total_incentive bigint NOT NULL, total_invoice bigint NOT NULL, total_items bigint NOT NULL,
    created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL,
    PRIMARY KEY (customer_id, order_id)
);

CREATE TABLE order_items (
    customer_id bigint, order_id bigint, order_item_id bigint,
    seller_id bigint NOT NULL, product_id bigint NOT NULL, product_name text NOT NULL, unit_price bigint NOT NULL,
    freight_value bigint NOT NULL, quantity bigint NOT NULL, total_items bigint NOT NULL,
    total_incentive bigint NOT NULL, total_amount bigint NOT NULL, shipping_limit_date timestamptz NOT NULL,
    PRIMARY KEY (customer_id, order_id, order_item_id)
);

CREATE TABLE order_history (
    customer_id bigint, order_id bigint, created_at timestamptz NOT NULL, status text NOT NULL, seq bigint,
    PRIMARY KEY (customer_id, order_id, seq)
);

CREATE TABLE payments (
    customer_id bigint, order_id bigint, sequential bigint,
    type text NOT NULL, installments bigint NOT NULL, value bigint NOT NULL CHECK (value >= 0), status text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (customer_id, order_id, sequential)
);

CREATE TABLE cards (
    customer_id bigint, order_id bigint, sequential bigint,
    card_number text NOT NULL, card_holder_name text NOT NULL, card_expiration text NOT NULL, card_brand text NOT NULL,
    PRIMARY KEY (customer_id, order_id, sequential)
);

CREATE TABLE shipments (
    customer_id bigint, order_id bigint,
    package_count bigint NOT NULL, total_freight_value bigint NOT NULL, request_date timestamptz NOT NULL,
    status text NOT NULL, first_name text NOT NULL, last_name text NOT NULL, street text NOT NULL,
    complement text NOT NULL, zip_code text NOT NULL, city text NOT NULL, state text NOT NULL,
    PRIMARY KEY (customer_id, order_id)
);

CREATE TABLE packages (
    customer_id bigint, order_id bigint, package_id bigint,
    seller_id bigint NOT NULL, product_id bigint NOT NULL, product_name text NOT NULL, freight_value bigint NOT NULL,
    quantity bigint NOT NULL, shipping_date timestamptz NOT NULL, delivery_date timestamptz, status text NOT NULL,
    PRIMARY KEY (customer_id, order_id, package_id)
);
-- A seller's queue is this index: what a delivery looks for is its first entry for each seller.
CREATE INDEX waiting ON packages (seller_id, shipping_date, customer_id, order_id) WHERE status = 'shipped';

CREATE TABLE entry_details (
    seller_id bigint, customer_id bigint, order_id bigint,
    first_name text NOT NULL, last_name text NOT NULL, street text NOT NULL, complement text NOT NULL,
    zip_code text NOT NULL, city text NOT NULL, state text NOT NULL, card_brand text NOT NULL,
    installments bigint NOT NULL,
    PRIMARY KEY (seller_id, customer_id, order_id)
);

CREATE TABLE order_entries (
    seller_id bigint, customer_id bigint, order_id bigint, product_id bigint,
    natural_key text NOT NULL, package_id bigint, product_name text NOT NULL, product_category text,
    unit_price bigint NOT NULL, quantity bigint NOT NULL, total_items bigint NOT NULL, total_amount bigint NOT NULL,
    total_incentive bigint NOT NULL, freight_value bigint NOT NULL, total_invoice bigint NOT NULL,
    shipment_date timestamptz, delivery_date timestamptz, order_status text NOT NULL, delivery_status text,
    PRIMARY KEY (seller_id, customer_id, order_id, product_id)
);

CREATE TABLE low_stock (
    seller_id bigint, product_id bigint, level bigint NOT NULL, demand bigint NOT NULL, since timestamptz NOT NULL,
    PRIMARY KEY (seller_id, product_id)
);

CREATE TYPE buyer AS (
    customer_id bigint, checkout_id text, first_name text, last_name text, street text, complement text, city text,
    state text, zip_code text, payment_type text, installments bigint, card_number text, card_holder_name text,
    card_expiration text, card_brand text
);
