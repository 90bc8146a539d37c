# The API process in a container. A stub: it runs the API against a PostgreSQL and a Redis that are given to it; the full
# set of processes, their health checks and their sizes come with the deployment guide.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /srv/hordechat
COPY requirements/base.txt requirements/base.txt
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/base.txt
COPY . .
RUN useradd --system --no-create-home hordechat
USER hordechat
EXPOSE 7001
CMD ["granian", "--interface", "wsgi", "--host", "0.0.0.0", "--port", "7001", "--workers", "2", "--blocking-threads", "4", \
     "--backpressure", "32", "--no-ws", "--respawn-failed-workers", "hordechat.wsgi:application"]
