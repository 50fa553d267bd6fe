# The image `styx`: coordinator, worker, gateway and tools. `scripts/image` builds it, or `docker build --tag styx .`
# The base is the official Python, or any Debian with `python3` of version 3.11 or newer.
ARG PYTHON_IMAGE=docker.io/library/python:3.13-slim-trixie

# What is imported, in the locked versions, without the project.
FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# The official image brings Python's headers and pip; Debian's Python has them in packages of their own.
RUN set -eu; \
    apt-get update; \
    apt-get install --yes --no-install-recommends gcc libc6-dev; \
    headers="$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')"; \
    [ -e "$headers/Python.h" ] || apt-get install --yes --no-install-recommends python3-dev python3-venv; \
    rm -rf /var/lib/apt/lists/*
# Two environments: pip, mypy and setuptools' build stay in /opt/build, which the image does not get.
RUN python3 -m venv --without-pip /opt/styx && python3 -m venv /opt/build
WORKDIR /src
COPY requirements-image.lock ./
RUN /opt/build/bin/pip --python /opt/styx/bin/python install --require-hashes --no-compile -r requirements-image.lock \
    && /opt/styx/bin/python -m compileall -q --invalidation-mode checked-hash /opt/styx

# The project: the hot modules compiled, the rest as bytecode; /stage has what the image gets.
FROM dependencies AS project
COPY requirements-image-build.lock ./
# mypyc types the modules by what they import.
RUN /opt/build/bin/pip install --require-hashes --no-compile -r requirements-image-build.lock \
    && packages() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } \
    && packages /opt/styx/bin/python >"$(packages /opt/build/bin/python)/dependencies.pth"
COPY pyproject.toml README.md LICENSE ./
COPY scripts/compile.d scripts/compile.d
COPY styx styx
RUN set -eu; \
    PATH="/opt/build/bin:$PATH"; \
    python scripts/compile.d/build.py; \
    pip wheel --no-deps --no-build-isolation --wheel-dir dist .; \
    pip --python /opt/styx/bin/python install --no-deps --no-compile --root /stage dist/*.whl; \
    packages="/stage$(/opt/styx/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
    cp -R styx/_compiled "$packages/styx/"; \
    ln -s "$packages" /packages
COPY examples examples
COPY proof proof
COPY benchmarks benchmarks
RUN set -eu; \
    cp -R examples proof benchmarks /packages/; \
    /opt/styx/bin/python -m compileall -q --invalidation-mode checked-hash -s /stage "$(readlink /packages)"; \
    form="$(PYTHONPATH=/packages /opt/styx/bin/python -c 'import styx.native.form as c; print(c.describe(c.FORM))')"; \
    echo "the engine's form: $form"; \
    [ "$form" = compiled ]

FROM ${PYTHON_IMAGE}
# The base's pip goes. The official image's standard library has no bytecode, and nothing writes it later: each start
# would compile it anew.
RUN set -eu; \
    groupadd --gid 10001 styx; \
    useradd --uid 10001 --gid 10001 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin styx; \
    mkdir /app; \
    library="$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"; \
    rm -rf "$library"/ensurepip "$library"/site-packages/pip* /usr/local/bin/pip* /usr/share/python-wheels; \
    rm -rf /var/lib/apt/lists/*; \
    python3 -m compileall -q -x '/(tests?|lib2to3|idlelib|tkinter|turtledemo|site-packages|dist-packages)/' "$library"
COPY --from=dependencies /opt/styx /opt/styx
COPY --from=project /stage /
ENV PATH=/opt/styx/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
# An app's modules: copied here (examples/baked), or mounted. Nothing but /tmp is ever written.
WORKDIR /app
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["styx"]
CMD ["--help"]
ARG PYTHON_IMAGE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="styx" \
      org.opencontainers.image.description="Transactional stateful functions in Python: serializable, exactly-once, durable" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"
