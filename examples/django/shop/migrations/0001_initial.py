"""The table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Made by `manage.py makemigrations`."""

    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("email", models.EmailField(max_length=254)),
            ],
        ),
    ]
