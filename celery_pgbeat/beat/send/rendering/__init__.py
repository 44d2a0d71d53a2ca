"""Messages for the batch, equal byte for byte to what Celery's own `apply_async` would have sent.

Celery takes 200 us and more to make a message, of which next to nothing differs between two jobs of one task. So a
*template* is made once, at its fourth job: Celery makes one message of a job for a producer that keeps it
(`capture.py`), a *writer* brings it into the form in which its broker takes messages (`redis_writer.py`,
`amqp_writer.py`), and from then on only the *fields* are filled in (`message_fields.py`, `body.py`).

What makes a rendered message exact:

    the path    every function from `apply_entry` to the channel is Celery's or kombu's own, no handler listens to the
                signals of sending, no events are sent, no route depends on arguments, no running task claims the call
                (`eligibility.py`, checked for each batch)
    the key     jobs of one template have all in common that the message depends on, but the fields (`template_key`)
    the fields  they stand where they stood in the captured message; what `apply_async` checks and computes of each job
                is done by the same functions, or by an equal of theirs (`body.py`)
    the proof   what is rendered of the first job, and of a second one that has nothing but the key in common with it,
                is compared with what Celery and kombu make of them: the text that Redis gets and its key, the frames
                that RabbitMQ gets. One different byte, and the template is never used, and the log says so once
                (`build_template`)

What is left out beside the work: Redis' result backend is not asked to subscribe to a result that a beat never reads.

All else goes Celery's own way: a task with an `apply_async` of its own, tasks with pydantic arguments, `BeatLazyFunc`,
`retry`, an `expires` that is an instant, a result backend that takes part in the sending (`rpc://`), queues that are
declared for each message, transports other than kombu's Redis and py-amqp; with Redis named exchanges, and connections
that write again what had no answer; with RabbitMQ `countdown`, `eta`, a message's own time limits, `mandatory`, what is
larger than a frame, and connections without `confirm_publish`.
"""
