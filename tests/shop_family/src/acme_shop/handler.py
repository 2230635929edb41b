"""The sixteen tools. Plain functions run in a thread, so they may use SQLite directly."""

from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired

from jackfield import ErrorType, ToolError
from pydantic import Field
from typing_extensions import TypedDict

VOUCHERS = {"SPRING10": 10, "STAFF25": 25}

CustomerId = Annotated[str, Field(pattern=r"^C-\d+$", description="The customer's id, from find_customer.")]
OrderId = Annotated[str, Field(pattern=r"^A-\d+$", description="The number of the order, such as A-1001.")]
ProductId = Annotated[str, Field(pattern=r"^P-\d+$", description="The product's id, from search_products.")]
Quantity = Annotated[int, Field(ge=1, le=20, description="How many.")]
Address = Annotated[str, Field(min_length=8, max_length=200, description="Street, postcode and city.")]
Status = Literal["open", "shipped", "cancelled", "returned"]


class Customer(TypedDict):
    id: str
    name: str
    email: str
    address: str


class Product(TypedDict):
    id: str
    name: str
    price: int
    stock: int


class Order(TypedDict):
    id: str
    customer: str
    status: Status
    address: str
    items: dict[str, int]
    total: int
    refunded: NotRequired[int]
    voucher: NotRequired[str]


@dataclass
class OneCustomer:
    customer: CustomerId


@dataclass
class OneOrder:
    order: OrderId


@dataclass
class OneProduct:
    product: ProductId


@dataclass
class ByEmail:
    email: Annotated[str, Field(json_schema_extra={"format": "email"}, description="The customer's address.")]


@dataclass
class OrdersOf(OneCustomer):
    status: Annotated[Status | None, Field(description="Only orders with this status.")] = None


@dataclass
class Words:
    words: Annotated[str, Field(min_length=1, max_length=80, description="Words of the product's name.")]
    max_price: Annotated[int | None, Field(ge=1, description="The highest price, in cents.")] = None


@dataclass
class Purchase(OneCustomer):
    product: ProductId
    quantity: Quantity = 1


@dataclass
class Item(OneOrder):
    product: ProductId
    quantity: Quantity = 1


@dataclass
class OrderAddress(OneOrder):
    address: Address


@dataclass
class CustomerAddress(OneCustomer):
    address: Address


@dataclass
class Refund(OneOrder):
    cents: Annotated[int, Field(ge=1, le=1_000_000, description="The amount, in cents.")]


@dataclass
class Voucher(OneOrder):
    code: Annotated[str, Field(pattern="^[A-Z0-9]{4,12}$", description="The code on the voucher.")]


def find_customer(args: ByEmail, ctx) -> list[Customer]:
    return [each for each in ctx.shop.all("customer") if each["email"].lower() == args.email.lower()]


def get_customer(args: OneCustomer, ctx) -> Customer:
    return ctx.shop.get("customer", args.customer)


def list_orders(args: OrdersOf, ctx) -> list[Order]:
    orders = [each for each in ctx.shop.all("order") if each["customer"] == args.customer]
    return [each for each in orders if args.status in (None, each["status"])]


def get_order(args: OneOrder, ctx) -> Order:
    return ctx.shop.get("order", args.order)


def search_products(args: Words, ctx) -> list[Product]:
    words = args.words.lower().split()
    found = [each for each in ctx.shop.all("product") if all(word in each["name"].lower() for word in words)]
    return [each for each in found if args.max_price is None or each["price"] <= args.max_price]


def get_product(args: OneProduct, ctx) -> Product:
    return ctx.shop.get("product", args.product)


def order_history(args: OneCustomer, ctx) -> dict[str, int]:
    orders = [each["status"] for each in ctx.shop.all("order") if each["customer"] == args.customer]
    return {status: orders.count(status) for status in sorted(set(orders))}


def place_order(args: Purchase, ctx) -> Order:
    with ctx.shop.change() as data:
        address = data.get("customer", args.customer)["address"]
        order = {"id": f"A-{1001 + len(data.all('order'))}", "customer": args.customer, "address": address}
        return _move(data, {**order, "status": "open", "items": {}}, args.product, args.quantity)


def add_item(args: Item, ctx) -> Order:
    with ctx.shop.change() as data:
        return _move(data, _order(data, args.order, "open"), args.product, args.quantity)


def remove_item(args: Item, ctx) -> Order:
    with ctx.shop.change() as data:
        return _move(data, _order(data, args.order, "open"), args.product, -args.quantity)


def cancel_order(args: OneOrder, ctx) -> Order:
    with ctx.shop.change() as data:
        return _restock(data, _order(data, args.order, "open"), "cancelled")


def return_order(args: OneOrder, ctx) -> Order:
    with ctx.shop.change() as data:
        return _restock(data, _order(data, args.order, "shipped"), "returned")


def refund_order(args: Refund, ctx) -> Order:
    with ctx.shop.change() as data:
        order = data.get("order", args.order)
        refunded = order.get("refunded", 0) + args.cents
        if refunded > order["total"]:
            raise ToolError(ErrorType.CONFLICT, f"The order cost only {order['total']} cents.")
        return data.put("order", {**order, "refunded": refunded})


def change_order_address(args: OrderAddress, ctx) -> Order:
    with ctx.shop.change() as data:
        return data.put("order", {**_order(data, args.order, "open"), "address": args.address})


def change_customer_address(args: CustomerAddress, ctx) -> Customer:
    with ctx.shop.change() as data:
        return data.put("customer", {**data.get("customer", args.customer), "address": args.address})


def apply_voucher(args: Voucher, ctx) -> Order:
    if args.code not in VOUCHERS:
        raise ToolError(ErrorType.PERMANENT, f"There is no voucher {args.code}.")
    with ctx.shop.change() as data:
        return _priced(data, {**_order(data, args.order, "open"), "voucher": args.code})


def _order(data, key, status):
    order = data.get("order", key)
    if order["status"] != status:
        raise ToolError(ErrorType.CONFLICT, f"Order {key} is {order['status']}, not {status}.")
    return order


def _priced(data, order):
    full = sum(data.get("product", key)["price"] * count for key, count in order["items"].items())
    return data.put("order", {**order, "total": full * (100 - VOUCHERS.get(order.get("voucher"), 0)) // 100})


def _move(data, order, key, quantity):
    """Move products from the stock to an order, or back if `quantity` is negative."""
    product, count = data.get("product", key), order["items"].get(key, 0) + quantity
    if product["stock"] < quantity or count < 0:
        raise ToolError(ErrorType.CONFLICT, f"{product['stock']} in stock, {count - quantity} in the order.")
    data.put("product", {**product, "stock": product["stock"] - quantity})
    items = {**order["items"], key: count}
    return _priced(data, {**order, "items": {each: items[each] for each in items if items[each]}})


def _restock(data, order, status):
    for key, count in order["items"].items():
        product = data.get("product", key)
        data.put("product", {**product, "stock": product["stock"] + count})
    return data.put("order", {**order, "status": status})
