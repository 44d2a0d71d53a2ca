"""Makes messages by the batch, equal byte for byte to what Celery's own `apply_async` would have sent.

Celery takes 200 us and more to make a message, and the messages of two jobs of one task hardly differ. So a *template*
is made once, at its fourth job: Celery makes one message of a job for a producer that keeps it (`capture.py`), a
*writer* converts it into the form that its broker takes (`redis_writer.py`, `amqp_writer.py`), and from then on only
the *fields* are filled in (`message_fields.py`, `body.py`).

What makes a rendered message exact:

    the path    every function from `apply_entry` to the channel is Celery's or kombu's own, no handler listens to the
                signals of sending, no events are sent, no route depends on arguments, no running task claims the call
                (`eligibility.py`, checked for each batch)
    the key     jobs of one template are equal in everything that the message depends on, except the fields
                (`template_key`)
    the fields  they are filled in where the captured message has them; what `apply_async` checks and computes for each
                job is done by the same functions, or by equal ones (`body.py`)
    the proof   the rendered message of the first job, and of a second one that has only the key in common with it, is
                compared with what Celery and kombu make: for Redis the text and its key, for RabbitMQ the frames. If
                one byte differs, the template is never used, and the log has one line about it (`build_template`)

One thing besides the work is left out: Redis' result backend does not subscribe to a result that a beat never reads.

Everything else goes Celery's own way: a task with an `apply_async` of its own, tasks with pydantic arguments,
`BeatLazyFunc`, `retry`, an `expires` that is an instant, a result backend that takes part in the sending (`rpc://`),
queues that are declared for each message, transports other than kombu's Redis and py-amqp. With Redis also named
exchanges, and connections that write a command again if it had no answer. With RabbitMQ also `countdown`, `eta`, a
message's own time limits, `mandatory`, messages larger than a frame, connections without `confirm_publish`, and
exchanges that are not declared before (by a row's `exchange`, and of `Broadcast`).
"""
