"""What the servers import: `flask --app serve run` and `celery -A serve worker`. Run it to make the tables."""

from shop import create_app
from sqlalchemy import text

web = create_app()
celery = web.extensions["celery"]

if __name__ == "__main__":
    web.extensions["pgbeat"].migrate()
    with web.extensions["engine"].begin() as connection:
        connection.execute(text('create table if not exists "order" (id serial primary key, email text not null)'))
